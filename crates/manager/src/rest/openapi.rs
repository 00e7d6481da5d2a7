//! `spec/openapi.json`, written from the table of operations and the types.

use super::bodies::{
    InsertOrder, Instances, KeysOrder, LinkOrder, PageAddress, Session, SessionOrder,
};
use super::{Row, TABLE};
use crate::describe::{Description, Key};
use crate::engine::{Done, Event, FunctionView, Sample, View};
use crate::expand::Decisions;
use crate::network::Function;
use crate::policy::Policies;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The description of the interface (OpenAPI 3.1).
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let mut extra = Map::new();
    schemas(&mut generator, &mut extra);
    let mut paths: Map<String, Value> = Map::new();
    for row in TABLE {
        let method = row.method().as_str().to_lowercase();
        let path = paths.entry(row.path).or_insert_with(|| json!({}));
        path[method] = operation(row);
    }
    let mut schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    schemas.append(&mut extra);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Onym manager",
            "version": "1",
            "description": "Deploys, links, watches, scales and defends a network of services. Written by `onym net openapi`.",
        },
        "servers": [{"url": "http://127.0.0.1:8080"}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn schemas(generator: &mut SchemaGenerator, extra: &mut Map<String, Value>) {
    generator.subschema_for::<Decisions>();
    generator.subschema_for::<Description>();
    generator.subschema_for::<Done>();
    generator.subschema_for::<Function>();
    generator.subschema_for::<FunctionView>();
    generator.subschema_for::<InsertOrder>();
    generator.subschema_for::<Instances>();
    generator.subschema_for::<KeysOrder>();
    generator.subschema_for::<LinkOrder>();
    generator.subschema_for::<PageAddress>();
    generator.subschema_for::<Policies>();
    generator.subschema_for::<Session>();
    generator.subschema_for::<SessionOrder>();
    generator.subschema_for::<View>();
    let key = generator.subschema_for::<Key>();
    let event = generator.subschema_for::<Event>();
    let sample = generator.subschema_for::<Sample>();
    let text = json!({"type": "string"});
    extra.insert("Any".into(), json!({}));
    extra.insert("Keys".into(), json!({"type": "object", "additionalProperties": key}));
    extra.insert("Samples".into(), json!({"type": "array", "items": sample}));
    extra.insert(
        "Edges".into(),
        json!({"type": "array", "items": {"type": "object", "properties": {"from": text, "to": text}}}),
    );
    extra.insert(
        "Presets".into(),
        json!({"type": "array", "items": {"type": "object", "properties": {"name": text, "about": text, "toml": text}}}),
    );
    extra.insert(
        "Events".into(),
        json!({"type": "object", "properties": {
            "events": {"type": "array", "items": event},
            "last": {"type": "integer"},
            "lost": {"type": "integer"},
        }}),
    );
    extra.insert(
        "Health".into(),
        json!({"type": "object", "properties": {
            "ok": {"type": "boolean"}, "version": text,
            "leads": {"type": "boolean"}, "leader": {"type": ["string", "null"]},
        }}),
    );
    let fault = json!({"type": "object", "properties": {
        "object": text, "line": {"type": ["integer", "null"]}, "what": text, "next": text,
    }});
    extra.insert(
        "Error".into(),
        json!({"type": "object", "properties": {"error": {"type": "object", "properties": {
            "code": text, "message": text, "faults": {"type": "array", "items": fault},
        }}}}),
    );
}

fn content(name: &str) -> Value {
    if name.contains('/') {
        return json!({ name: {"schema": {"type": "string"}} });
    }
    json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}})
}

fn operation(row: &Row) -> Value {
    let in_path = row.path.split(['{', '}']).skip(1).step_by(2).map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
    );
    let in_query = row.query.iter().map(|(name, about)| {
        json!({"name": name, "in": "query", "description": about, "schema": {"type": "string"}})
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let error =
        json!({"description": "What is wrong and what to do.", "content": content("Error")});
    let id = format!("{:?}", row.operation);
    let mut operation = json!({
        "operationId": id[..1].to_lowercase() + &id[1..],
        "summary": row.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done.", "content": content(row.answer)},
            "default": error,
        },
    });
    if let Some(body) = row.body {
        operation["requestBody"] = json!({"required": true, "content": content(body)});
    }
    operation
}
