//! Has tests only: `tests/s3s.rs`.
