//! TOML and YAML as one tree that knows the line of everything, so that both are read by the same
//! decoder and an error names its line.

use super::DescribeError;
use onym_yaml::{Bounds, MarkedYaml, Scalar, YamlData};
use serde_json::Value;
use toml::de::{DeInteger, DeValue};

/// Largest description, in octets.
pub(super) const BYTES_MAX: usize = 1 << 20;
/// Deepest nesting.
const DEPTH_MAX: usize = 16;

/// A value and its line, from 1.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Tree,
}

#[derive(Debug, Clone)]
pub(super) enum Tree {
    /// Anything without parts.
    Leaf(Value),
    List(Vec<Node>),
    /// Keys with their lines, in order.
    Map(Vec<(String, usize, Node)>),
}

impl Node {
    /// The same without lines.
    pub(super) fn to_json(&self) -> Value {
        match &self.value {
            Tree::Leaf(value) => value.clone(),
            Tree::List(items) => items.iter().map(Self::to_json).collect(),
            Tree::Map(rows) => {
                Value::Object(rows.iter().map(|(k, _, v)| (k.clone(), v.to_json())).collect())
            }
        }
    }
}

/// Reads TOML.
pub(super) fn from_toml(text: &str) -> Result<Node, DescribeError> {
    let lines = Lines::of(text)?;
    let table = toml::de::DeTable::parse(text).map_err(|error| DescribeError::Syntax {
        line: error.span().map_or(1, |span| lines.at(span.start)),
        message: error.message().to_owned(),
    })?;
    let root = DeValue::Table(table.into_inner());
    toml_node(&root, 1, &lines, 0)
}

fn toml_node(
    value: &DeValue<'_>,
    line: usize,
    lines: &Lines,
    depth: usize,
) -> Result<Node, DescribeError> {
    if depth > DEPTH_MAX {
        return Err(too_deep(line));
    }
    let leaf = |value: Value| Ok(Node { line, value: Tree::Leaf(value) });
    match value {
        DeValue::String(text) => leaf(text.as_ref().into()),
        DeValue::Boolean(flag) => leaf((*flag).into()),
        DeValue::Integer(number) => leaf(integer(number).map_or(Value::Null, Value::from)),
        DeValue::Float(number) => {
            leaf(number.as_str().replace('_', "").parse::<f64>().map_or(Value::Null, Value::from))
        }
        DeValue::Datetime(time) => leaf(time.to_string().into()),
        DeValue::Array(items) => {
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                list.push(toml_node(
                    item.get_ref(),
                    lines.at(item.span().start),
                    lines,
                    depth + 1,
                )?);
            }
            Ok(Node { line, value: Tree::List(list) })
        }
        DeValue::Table(table) => {
            let mut rows = Vec::with_capacity(table.len());
            for (key, value) in table {
                let at = lines.at(key.span().start);
                let node = toml_node(value.get_ref(), at, lines, depth + 1)?;
                rows.push((key.get_ref().to_string(), at, node));
            }
            rows.sort_by_key(|(_, at, _)| *at);
            Ok(Node { line, value: Tree::Map(rows) })
        }
    }
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

/// Reads YAML, one document.
pub(super) fn from_yaml(text: &str) -> Result<Node, DescribeError> {
    let bounds = Bounds { bytes_max: BYTES_MAX, depth_max: DEPTH_MAX };
    let document = onym_yaml::load(text, bounds)
        .map_err(|error| DescribeError::Syntax { line: error.line, message: error.what })?;
    match document {
        Some(document) => yaml_node(&document, 0),
        None => Ok(Node { line: 1, value: Tree::Map(Vec::new()) }),
    }
}

fn yaml_node(node: &MarkedYaml<'_>, depth: usize) -> Result<Node, DescribeError> {
    let line = node.span.start.line().max(1);
    if depth > DEPTH_MAX {
        return Err(too_deep(line));
    }
    let value = match &node.data {
        YamlData::Value(scalar) => Tree::Leaf(scalar_value(scalar)),
        YamlData::Sequence(items) => Tree::List(
            items.iter().map(|item| yaml_node(item, depth + 1)).collect::<Result<_, _>>()?,
        ),
        YamlData::Mapping(map) => {
            let mut rows = Vec::with_capacity(map.len());
            for (key, value) in map {
                let at = key.span.start.line().max(1);
                let YamlData::Value(scalar) = &key.data else {
                    return Err(DescribeError::Syntax {
                        line: at,
                        message: "a key must be a word".to_owned(),
                    });
                };
                let word = match scalar_value(scalar) {
                    Value::String(word) => word,
                    other => other.to_string(),
                };
                rows.push((word, at, yaml_node(value, depth + 1)?));
            }
            Tree::Map(rows)
        }
        YamlData::Tagged(_, inner) => return yaml_node(inner, depth + 1),
        YamlData::Representation(text, ..) => Tree::Leaf(text.as_ref().into()),
        YamlData::Alias(_) | YamlData::BadValue => {
            return Err(DescribeError::Syntax {
                line,
                message: "this value cannot be read".to_owned(),
            });
        }
    };
    Ok(Node { line, value })
}

fn scalar_value(scalar: &Scalar<'_>) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(flag) => (*flag).into(),
        Scalar::Integer(number) => (*number).into(),
        Scalar::FloatingPoint(number) => number.into_inner().into(),
        Scalar::String(text) => text.as_ref().into(),
    }
}

fn too_deep(line: usize) -> DescribeError {
    DescribeError::Syntax { line, message: format!("nested deeper than {DEPTH_MAX}") }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Result<Self, DescribeError> {
        if text.len() > BYTES_MAX {
            return Err(DescribeError::Syntax {
                line: 1,
                message: format!("the description is longer than {BYTES_MAX} octets"),
            });
        }
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Ok(Self(std::iter::once(0).chain(ends).collect()))
    }

    /// The line of an octet, from 1.
    fn at(&self, octet: usize) -> usize {
        self.0.partition_point(|begin| *begin <= octet).max(1)
    }
}
