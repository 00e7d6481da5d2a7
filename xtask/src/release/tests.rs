use super::*;

const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- First.\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"onym\"\nversion = \"0.1.0\"\ndependencies = [\n \"other\",\n]\n\n[[package]]\nname = \"other\"\nversion = \"0.1.0\"\nsource = \"registry+https://example.invalid\"\n";

/// A tree with what a release reads.
fn tree() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let write = |path: &str, text: &str| {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    };
    let repository = "repository = \"https://example.invalid/onym\"";
    write("Cargo.toml", &format!("[workspace.package]\nversion = \"0.1.0\"\n{repository}\n"));
    write("Cargo.lock", LOCK);
    write("CHANGELOG.md", CHANGELOG);
    for (path, before, after) in PLACES {
        write(path, &format!("#{before}0.1.0{after}\n"));
    }
    git(root, &["init", "--quiet"]).unwrap();
    git(root, &["config", "user.name", "Somebody"]).unwrap();
    git(root, &["config", "user.email", "somebody@example.invalid"]).unwrap();
    git(root, &["add", "."]).unwrap();
    git(root, &["commit", "--quiet", "--message", "Begin"]).unwrap();
    place
}

fn release(root: &Path, words: &[&str]) -> Result<()> {
    let mut all: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    all.extend(["--root".to_owned(), root.display().to_string(), "--no-build".to_owned()]);
    run(&all)
}

#[test]
fn a_dry_run_writes_nothing_and_a_release_everything() {
    let place = tree();
    let root = place.path();
    let head = git(root, &["rev-parse", "HEAD"]).unwrap();
    release(root, &["0.2.0", "--dry-run"]).unwrap();
    assert!(git(root, &["status", "--porcelain"]).unwrap().is_empty());
    assert_eq!(git(root, &["rev-parse", "HEAD"]).unwrap(), head);
    assert!(git(root, &["tag"]).unwrap().is_empty());

    release(root, &["0.2.0"]).unwrap();
    assert!(git(root, &["status", "--porcelain"]).unwrap().is_empty());
    assert_eq!(git(root, &["tag"]).unwrap(), "v0.2.0\n");
    assert_eq!(git(root, &["cat-file", "-t", "v0.2.0"]).unwrap(), "tag\n");
    let lock = read(root, "Cargo.lock").unwrap();
    assert!(lock.contains("name = \"onym\"\nversion = \"0.2.0\""), "{lock}");
    assert!(lock.contains("name = \"other\"\nversion = \"0.1.0\""), "{lock}");
    let changelog = read(root, "CHANGELOG.md").unwrap();
    let day = git(root, &["log", "-1", "--format=%cs"]).unwrap();
    let expected = format!(
        "## [Unreleased]\n\n## [0.2.0] - {}\n\n### Added\n\n- A thing.\n\n## [0.1.0]",
        day.trim()
    );
    assert!(changelog.contains(&expected), "{changelog}");
    for (path, before, after) in PLACES {
        assert!(read(root, path).unwrap().contains(&format!("{before}0.2.0{after}")), "{path}");
    }
    let again = release(root, &["0.3.0"]).unwrap_err().to_string();
    assert!(again.contains("nothing unreleased"), "{again}");
}

#[test]
fn what_speaks_against_a_release_is_said_before_anything_is_written() {
    let place = tree();
    let root = place.path();
    for (version, says) in [
        ("0.1.0", "not later than"),
        ("0.0.9", "not later than"),
        ("1.0", "no version such as"),
        ("v0.2.0", "no version such as"),
    ] {
        let error = format!("{:#}", release(root, &[version]).unwrap_err());
        assert!(error.contains(says), "{version}: {error}");
    }
    git(root, &["tag", "v0.2.0"]).unwrap();
    assert!(release(root, &["0.2.0"]).unwrap_err().to_string().contains("there already"));
    fs::write(root.join("CHANGELOG.md"), "changed").unwrap();
    assert!(release(root, &["0.3.0"]).unwrap_err().to_string().contains("commit first"));
}

#[test]
fn the_version_stands_where_a_release_looks_for_it() {
    let root = tidy::root().unwrap();
    let manifest = read(&root, "Cargo.toml").unwrap();
    let version = between(&manifest, "\nversion = \"", "\"").unwrap();
    for (path, before, after) in PLACES {
        assert_eq!(between(&read(&root, path).unwrap(), before, after), Some(version), "{path}");
    }
}

#[test]
fn sums_are_those_that_sha256sum_checks() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a"), "x").unwrap();
    sums::write(place.path()).unwrap();
    sums::write(place.path()).unwrap();
    let checked = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(place.path())
        .status()
        .unwrap();
    assert!(checked.success());
}

#[test]
fn provenance_names_each_file_the_commit_and_the_compiler() {
    let place = tree();
    let root = place.path();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.deb"), "x").unwrap();
    fs::write(folder.path().join("SHA256SUMS"), "of before").unwrap();
    provenance::write(root, folder.path(), "0.2.0").unwrap();
    let text = read(folder.path(), "onym-0.2.0.provenance.json").unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!(told["subject"], serde_json::json!([{"name": "a.deb", "digest": {"sha256": x}}]));
    let of = &told["predicate"]["buildDefinition"]["resolvedDependencies"];
    let head = git(root, &["rev-parse", "HEAD"]).unwrap();
    assert_eq!(of[0]["digest"]["gitCommit"], head.trim());
    assert_eq!(of[1]["digest"]["sha256"].as_str().map(str::len), Some(64));
    assert!(of[2]["name"].as_str().unwrap().starts_with("rustc "), "{text}");
    // The sums have it, too.
    sums::write(folder.path()).unwrap();
    let sums = read(folder.path(), "SHA256SUMS").unwrap();
    assert!(sums.contains(&format!("{x}  a.deb\n")), "{sums}");
    assert!(sums.contains("  onym-0.2.0.provenance.json\n") && sums.lines().count() == 2, "{sums}");
}
