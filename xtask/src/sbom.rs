//! What the program is made of: a bill of materials (CycloneDX 1.5, JSON), from cargo's own graph
//! and the checksums of Cargo.lock. `xtask sbom [FILE]`; the same tree gives the same octets.

use crate::tidy;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let root = tidy::root()?;
    let file = arguments.first().map_or("target/onym.cdx.json", String::as_str);
    write(&root, &root.join(file))?;
    println!("{file} is written");
    Ok(())
}

pub(crate) fn write(root: &Path, file: &Path) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&bill(root)?)?;
    fs::write(file, text + "\n").with_context(|| file.display().to_string())
}

/// Packages that are compiled into `onym` or run while it is built.
fn bill(root: &Path) -> Result<Value> {
    let out = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let data: Value = serde_json::from_slice(&out.stdout)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&data["packages"]).into_iter().map(|p| (text(&p["id"]), p)).collect();
    let edges: BTreeMap<String, Vec<String>> = list(&data["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let ships = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|k| k["kind"] != "dev");
            let deps = list(&node["deps"]);
            (text(&node["id"]), deps.iter().filter(ships).map(|d| text(&d["pkg"])).collect())
        })
        .collect();
    let top = packages.iter().find(|(_, p)| p["name"] == "onym").context("no package onym")?.0;
    let mut reached = BTreeSet::from([top.clone()]);
    let mut open = vec![top.clone()];
    while let Some(id) = open.pop() {
        for next in edges.get(&id).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let sums = sums(&lock)?;
    let mut components: Vec<Value> = reached
        .iter()
        .filter(|id| *id != top)
        .map(|id| component(&packages[id], &sums, "library"))
        .collect();
    components.sort_by_key(|c| text(&c["bom-ref"]));
    let mut dependencies: Vec<Value> = reached
        .iter()
        .map(|id| {
            let mut on: Vec<String> =
                edges[id].iter().map(|next| reference(&packages[next])).collect();
            on.sort();
            json!({"ref": reference(&packages[id]), "dependsOn": on})
        })
        .collect();
    dependencies.sort_by_key(|d| text(&d["ref"]));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(&lock),
        "version": 1,
        "metadata": {"component": component(&packages[top], &sums, "application")},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The package URL, which also is what edges refer to.
fn reference(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>, kind: &str) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(package),
        "name": name,
        "version": version,
        "purl": reference(package),
        // The old form "MIT/Apache-2.0" means OR.
        "licenses": [{"expression": text(&package["license"]).replace('/', " OR ")}],
    });
    if let Some(sum) = sums.get(&(name, version)) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

fn sums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse()?;
    let packages = lock["package"].as_array().context("Cargo.lock has no packages")?;
    let of = |package: &toml::Value| {
        let word = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        Some(((word("name")?, word("version")?), word("checksum")?))
    };
    Ok(packages.iter().filter_map(of).collect())
}

/// A number of this bill that follows from what is in it (UUID version 8).
fn serial(lock: &str) -> String {
    let hash = |seed: u64| {
        lock.bytes().fold(seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
    };
    let (a, b) = (hash(0xcbf2_9ce4_8422_2325), hash(0x8422_2325_cbf2_9ce4));
    format!(
        "urn:uuid:{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        (b >> 48) & 0x3fff | 0x8000,
        b & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_a_licence_a_checksum_or_is_ours_and_every_edge_leads_to_one() {
        let bill = bill(&tidy::root().unwrap()).unwrap();
        assert_eq!(bill["metadata"]["component"]["name"], "onym");
        let components = bill["components"].as_array().unwrap();
        assert!(components.len() > 100, "{}", components.len());
        let mut known = BTreeSet::from([text(&bill["metadata"]["component"]["bom-ref"])]);
        for component in components {
            let name = text(&component["name"]);
            assert!(known.insert(text(&component["bom-ref"])), "{name} is there twice");
            assert!(!text(&component["licenses"][0]["expression"]).is_empty(), "{name}");
            let is_ours = name.starts_with("onym-");
            assert!(is_ours != component["hashes"].is_array(), "{name}: {component}");
        }
        for dependency in bill["dependencies"].as_array().unwrap() {
            assert!(known.contains(&text(&dependency["ref"])));
            for on in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(&text(on)), "{on}");
            }
        }
        assert!(
            !known.iter().any(|r| r.starts_with("pkg:cargo/proptest@")),
            "a package of tests only"
        );
        let serial = text(&bill["serialNumber"]);
        assert_eq!(serial.len(), "urn:uuid:".len() + 36, "{serial}");
    }
}
