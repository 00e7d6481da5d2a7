//! What is known of plans, until they change: one may be megabytes, and pages ask every few seconds.

use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Octets of the files whose plans are kept; those of further ones are read at each question.
const OCTETS_MAX: u64 = 64 << 20;

/// What a run is to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Replicates.
    pub(super) total: usize,
    /// Cell and replication of each that can be told, in order.
    pub(super) order: Vec<(String, u64)>,
    /// What cells are called.
    pub(super) labels: HashMap<String, String>,
}

impl Plan {
    pub(super) fn of(plan: &Value) -> Self {
        let order = plan["order"].as_array().map_or(&[][..], Vec::as_slice);
        let one = |one: &Value| Some((one[0].as_str()?.to_owned(), one[1].as_u64()?));
        let cells = plan["cells"].as_array().into_iter().flatten();
        let label =
            |cell: &Value| Some((cell["cell"].as_str()?.into(), cell["label"].as_str()?.into()));
        Self {
            total: order.len(),
            order: order.iter().filter_map(one).collect(),
            labels: cells.filter_map(label).collect(),
        }
    }
}

/// By which a file is known to be as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    fn of(meta: &Metadata) -> Self {
        Self {
            inode: meta.ino(),
            len: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Plans that were read.
#[derive(Debug, Default)]
pub(super) struct Plans {
    /// With none for a file that has no plan.
    kept: HashMap<PathBuf, (Mark, Option<Arc<Plan>>)>,
    octets: u64,
}

impl Plans {
    /// The plan in a file; `read` reads one that is new or changed.
    pub(super) fn get(
        &mut self,
        path: &Path,
        read: impl FnOnce(&Path) -> Option<Plan>,
    ) -> Option<Arc<Plan>> {
        // Before it is read: what changes meanwhile is read again at the next question.
        let mark = fs::metadata(path).ok().map(|meta| Mark::of(&meta))?;
        if let Some((_, plan)) = self.kept.get(path).filter(|(known, _)| *known == mark) {
            return plan.clone();
        }
        let plan = read(path).map(Arc::new);
        self.forget(path);
        // At least one: a file without octets takes room, too.
        let octets = self.octets + mark.len.max(1);
        if octets <= OCTETS_MAX {
            self.octets = octets;
            self.kept.insert(path.to_owned(), (mark, plan.clone()));
        }
        plan
    }

    /// Forgets all but these.
    pub(super) fn keep(&mut self, paths: &HashSet<PathBuf>) {
        let gone = self.kept.keys().filter(|path| !paths.contains(*path)).cloned();
        for path in gone.collect::<Vec<_>>() {
            self.forget(&path);
        }
    }

    fn forget(&mut self, path: &Path) {
        if let Some((mark, _)) = self.kept.remove(path) {
            self.octets -= mark.len.max(1);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn plan(total: usize) -> Option<Plan> {
        Some(Plan { total, ..Plan::default() })
    }

    fn total(plan: Option<Arc<Plan>>) -> Option<usize> {
        plan.map(|plan| plan.total)
    }

    /// Law: a file is read once, and again after it changed, also where it is as long as before; one that
    /// has no plan is not read again either.
    #[test]
    fn a_plan_is_read_again_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let mut plans = Plans::default();
        assert_eq!(total(plans.get(&path, |_| unreachable!())), None, "it is not there");
        fs::write(&path, "one").unwrap();
        assert_eq!(total(plans.get(&path, |_| plan(1))), Some(1));
        assert_eq!(total(plans.get(&path, |_| unreachable!())), Some(1));
        // As the laboratory writes: beside it, and in its place.
        let beside = folder.path().join("new");
        fs::write(&beside, "two").unwrap();
        fs::rename(&beside, &path).unwrap();
        assert_eq!(total(plans.get(&path, |_| None)), None);
        assert_eq!(total(plans.get(&path, |_| unreachable!())), None);
    }

    /// Law: what is kept is bounded: a run that is gone is forgotten, and what is beyond the bound is read
    /// at each question.
    #[test]
    fn no_more_than_the_bound_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for path in &paths {
            // Without blocks of its own.
            fs::File::create(path).unwrap().set_len(OCTETS_MAX / 2 + 1).unwrap();
        }
        let mut plans = Plans::default();
        let [a, b] = &paths;
        assert_eq!(total(plans.get(a, |_| plan(1))), Some(1));
        assert_eq!(total(plans.get(b, |_| plan(2))), Some(2));
        assert_eq!(total(plans.get(b, |_| plan(3))), Some(3), "it was not kept");
        assert_eq!(total(plans.get(a, |_| unreachable!())), Some(1));
        plans.keep(&HashSet::from([b.clone()]));
        assert_eq!((plans.octets, plans.kept.len()), (0, 0));
        assert_eq!(total(plans.get(b, |_| plan(4))), Some(4));
        assert_eq!(total(plans.get(b, |_| unreachable!())), Some(4));
    }
}
