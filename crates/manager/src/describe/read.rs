//! Descriptions read in each of their forms, and checked.

use super::{DescribeError, Described, Form, decode, tree};
use crate::{expand, tosca};

/// Reads and checks a description.
///
/// # Errors
/// Its syntax, or everything that is wrong with it, with lines.
pub fn read(text: &str, form: Form) -> Result<Described, DescribeError> {
    let described = match form {
        Form::Toml => decode::decode(&tree::from_toml(text)?)?,
        Form::Yaml => decode::decode(&tree::from_yaml(text)?)?,
        Form::Tosca => tosca::import(text)?,
    };
    let faults = expand::check(&described.description);
    if faults.is_empty() {
        return Ok(described);
    }
    Err(DescribeError::Faults(described.locate(faults)))
}
