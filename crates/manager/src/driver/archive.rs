//! Archives as a container engine takes them: ustar, plain files with short names.

/// An archive that grows.
#[derive(Debug, Default)]
pub(super) struct Archive {
    octets: Vec<u8>,
}

const BLOCK: usize = 512;

impl Archive {
    /// Adds a file of user and group `owner`. The name has at most 100 octets.
    pub(super) fn file(&mut self, name: &str, mode: u32, owner: u32, content: &[u8]) {
        let mut head = [0u8; BLOCK];
        put(&mut head, 0, name.as_bytes());
        put(&mut head, 100, format!("{mode:07o}\0").as_bytes());
        put(&mut head, 108, format!("{owner:07o}\0").as_bytes());
        put(&mut head, 116, format!("{owner:07o}\0").as_bytes());
        put(&mut head, 124, format!("{:011o}\0", content.len()).as_bytes());
        put(&mut head, 136, b"00000000000\0");
        put(&mut head, 148, b"        "); // The sum is taken with spaces in its place.
        head[156] = b'0';
        put(&mut head, 257, b"ustar\x0000");
        let sum: u32 = head.iter().map(|b| u32::from(*b)).sum();
        put(&mut head, 148, format!("{sum:06o}\0 ").as_bytes());
        self.octets.extend_from_slice(&head);
        self.octets.extend_from_slice(content);
        self.octets.resize(self.octets.len().next_multiple_of(BLOCK), 0);
    }

    /// The whole, ended by two empty blocks.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.octets.resize(self.octets.len() + 2 * BLOCK, 0);
        self.octets
    }
}

fn put(head: &mut [u8; BLOCK], at: usize, text: &[u8]) {
    head[at..at + text.len()].copy_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::default();
        archive.file("one", 0o644, 0, b"first");
        archive.file("two", 0o600, 65_534, &[7; 600]);
        let path = folder.path().join("a.tar");
        std::fs::write(&path, archive.finish()).unwrap();
        let out = std::process::Command::new("tar")
            .arg("-xf")
            .arg(&path)
            .arg("-C")
            .arg(folder.path())
            .arg("--no-same-owner")
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        assert_eq!(std::fs::read(folder.path().join("one")).unwrap(), b"first");
        assert_eq!(std::fs::read(folder.path().join("two")).unwrap().len(), 600);
    }
}
