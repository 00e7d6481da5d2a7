//! Laws of the elements.
