"""The laboratory of Onym: an experiment is one file, a run is one command."""
