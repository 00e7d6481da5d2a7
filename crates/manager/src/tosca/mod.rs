//! Import and export as TOSCA Simple Profile in YAML 1.3.
//!
//! A function is a node template of type `onym.nodes.<Kind>`, a link a requirement `next` with its
//! side and transport as properties of the relationship, a scalable function has
//! `tosca.capabilities.Scalable`, policies are `tosca.policies.Scaling` and
//! `onym.policies.Poisoning`. `import(export(d)) == d` is a test.

use crate::describe::{
    DescribeError, Described, Description, Key, Loops, without_lines, yaml_value,
};
use crate::kind::{KINDS, Kind};
use crate::network::{Ends, Fault, Function, Settings, Side, Transport};
use crate::policy::Policies;
use serde_json::{Map, Value, json};

const VERSION: &str = "tosca_simple_yaml_1_3";

/// `content-store` is `onym.nodes.ContentStore`.
fn type_of(kind: Kind) -> String {
    let camel = kind.word().split('-').map(|part| {
        let (first, rest) = part.split_at(1);
        first.to_uppercase() + rest
    });
    format!("onym.nodes.{}", camel.collect::<String>())
}

/// The description as a service template.
#[must_use]
pub fn export(description: &Description) -> String {
    let mut nodes = Map::new();
    for (name, function) in &description.graph.functions {
        nodes.insert(name.clone(), node(description, name, function));
    }
    let scaling = &description.policies.scaling;
    let policies = json!([
        {"scaling": {"type": "tosca.policies.Scaling", "properties": scaling}},
        {"poisoning": {"type": "onym.policies.Poisoning", "properties": description.policies.poisoning}},
    ]);
    let template = json!({
        "tosca_definitions_version": VERSION,
        "metadata": {"template_name": description.network},
        "node_types": types(),
        "relationship_types": {"onym.relationships.Link": {
            "derived_from": "tosca.relationships.ConnectsTo",
            "properties": {
                "side": {"type": "string", "default": "consumer"},
                "transport": {"type": "string", "default": "tcp"},
            },
        }},
        "policy_types": {"onym.policies.Poisoning": {"derived_from": "tosca.policies.Root"}},
        "topology_template": {
            "inputs": {},
            "node_templates": nodes,
            "policies": policies,
        },
    });
    let mut template = template;
    template["metadata"]["onym_loops"] = json!(description.loops);
    if !description.keys.is_empty() {
        // The metadata of TOSCA are texts.
        let keys = serde_json::to_string(&description.keys).unwrap_or_default();
        template["metadata"]["onym_keys"] = keys.into();
    }
    let mut out = String::new();
    crate::describe::write_yaml(&template, &mut out);
    out
}

fn types() -> Value {
    let row = |(kind, _): &(Kind, &str)| {
        let properties = json!({
            "config": {"type": "map", "required": false},
            "listen": {"type": "map", "required": false},
            "quota": {"type": "float", "required": false},
            "multicast": {"type": "boolean", "default": false},
        });
        let value = json!({
            "derived_from": "tosca.nodes.SoftwareComponent",
            "properties": properties,
            "requirements": [{"next": {
                "capability": "tosca.capabilities.Node",
                "relationship": "onym.relationships.Link",
                "occurrences": [0, "UNBOUNDED"],
            }}],
        });
        (type_of(*kind), value)
    };
    Value::Object(KINDS.iter().map(row).collect())
}

fn node(description: &Description, name: &str, function: &Function) -> Value {
    let mut properties = Map::new();
    if !function.config.is_empty() {
        properties.insert("config".into(), Value::Object(function.config.clone()));
    }
    if !function.listen.is_empty() {
        properties.insert("listen".into(), json!(function.listen));
    }
    if let Some(quota) = function.quota {
        properties.insert("quota".into(), quota.into());
    }
    if function.multicast {
        properties.insert("multicast".into(), true.into());
    }
    let mut row = json!({"type": type_of(function.kind), "properties": properties});
    if function.scalable || function.instances_max.is_some() {
        row["capabilities"] = json!({"scalable": {"properties": {
            "min_instances": 1,
            "default_instances": 1,
            "max_instances": function.instances_max.unwrap_or(0),
            "automatic": function.scalable,
        }}});
    }
    let links = description.graph.out_of(name).map(|(ends, transport)| {
        json!({"next": {"node": ends.to, "relationship": {
            "type": "onym.relationships.Link",
            "properties": {"side": ends.side, "transport": transport},
        }}})
    });
    let links: Vec<Value> = links.collect();
    if !links.is_empty() {
        row["requirements"] = links.into();
    }
    row
}

/// Reads a service template.
///
/// # Errors
/// Its syntax, and everything in it that is no network of ours.
pub fn import(text: &str) -> Result<Described, DescribeError> {
    let root = yaml_value(text)?;
    let mut faults = Vec::new();
    if root["tosca_definitions_version"] != VERSION {
        let what = format!("it is not {VERSION}");
        faults.push(Fault::new("tosca_definitions_version", what, "export in that version"));
    }
    let mut description = Description {
        network: root["metadata"]["template_name"].as_str().unwrap_or_default().to_owned(),
        loops: parsed(&root["metadata"]["onym_loops"]).unwrap_or(Loops::Guard),
        ..Description::default()
    };
    if let Some(keys) = root["metadata"]["onym_keys"].as_str() {
        match serde_json::from_str::<std::collections::BTreeMap<String, Key>>(keys) {
            Ok(keys) => description.keys = keys,
            Err(error) => {
                faults.push(Fault::new("onym_keys", error.to_string(), "write a JSON text"));
            }
        }
    }
    let topology = &root["topology_template"];
    match topology["node_templates"].as_object() {
        Some(nodes) => {
            for (name, row) in nodes {
                read_node(&mut description, name, row, &mut faults);
            }
        }
        None => faults.push(Fault::new(
            "topology_template",
            "there are no node_templates",
            "a network has functions",
        )),
    }
    for row in topology["policies"].as_array().into_iter().flatten() {
        read_policy(&mut description.policies, row, &mut faults);
    }
    if faults.is_empty() {
        Ok(without_lines(description))
    } else {
        Err(DescribeError::Faults(faults))
    }
}

fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fn read_node(description: &mut Description, name: &str, row: &Value, faults: &mut Vec<Fault>) {
    let object = format!("function {name}");
    let word = row["type"].as_str().unwrap_or_default();
    let Some((kind, _)) = KINDS.iter().find(|(k, _)| type_of(*k) == word) else {
        let known: Vec<String> = KINDS.iter().map(|(k, _)| type_of(*k)).collect();
        let next = format!("one of: {}", known.join(", "));
        faults.push(Fault::new(object, format!("unknown type {word:?}"), next));
        return;
    };
    let properties = &row["properties"];
    let mut function = Function::new(*kind);
    function.config = parsed::<Settings>(&properties["config"]).unwrap_or_default();
    function.listen = parsed(&properties["listen"]).unwrap_or_default();
    function.quota = properties["quota"].as_f64();
    function.multicast = properties["multicast"].as_bool().unwrap_or(false);
    for (key, value) in &function.config {
        if let Err((what, next)) = crate::settings::check(*kind, key, value) {
            faults.push(Fault::new(object.clone(), what, next));
        }
    }
    let scalable = &row["capabilities"]["scalable"]["properties"];
    if scalable.is_object() {
        function.scalable = scalable["automatic"].as_bool().unwrap_or(true);
        let most = scalable["max_instances"].as_u64().and_then(|n| u32::try_from(n).ok());
        function.instances_max = most.filter(|n| *n > 0);
    }
    for requirement in row["requirements"].as_array().into_iter().flatten() {
        let next = &requirement["next"];
        let Some(to) = next.as_str().or_else(|| next["node"].as_str()) else { continue };
        let properties = &next["relationship"]["properties"];
        let side = parsed(&properties["side"]).unwrap_or(Side::Consumer);
        let transport = parsed(&properties["transport"]).unwrap_or(Transport::Tcp);
        let ends = Ends { from: name.to_owned(), to: to.to_owned(), side };
        description.graph.link(ends, transport);
    }
    description.graph.functions.insert(name.to_owned(), function);
}

fn read_policy(policies: &mut Policies, row: &Value, faults: &mut Vec<Fault>) {
    for (name, policy) in row.as_object().into_iter().flatten() {
        let part = match policy["type"].as_str() {
            Some("tosca.policies.Scaling") => "scaling",
            Some("onym.policies.Poisoning") => "poisoning",
            _ => continue, // Other policies of a template are not the manager's.
        };
        let one = json!({ part: policy["properties"] });
        match serde_json::from_value::<Policies>(one) {
            Ok(read) if part == "scaling" => policies.scaling = read.scaling,
            Ok(read) => policies.poisoning = read.poisoning,
            Err(error) => {
                let object = format!("policy {name}");
                faults.push(Fault::new(object, error.to_string(), "see the keys of policies"));
            }
        }
    }
}
