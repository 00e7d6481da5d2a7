//! A validator, and the files that it judges by.

use crate::files::{self, Stamp};
use crate::schema::{self, Loaded, Unusable};
use crate::settings::Settings;
use onym_crypto::Certificate;
use onym_trust::chain::{AnchorError, Counts, Limits, ListError, Records, Revoked, Validator};
use onym_trust::{Hierarchy, Policy};
use onym_wire::Name;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest list of revocations, in octets.
const LIST_MAX: u64 = 4 << 20;

/// Why there is no trust to judge by.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The schema.
    #[error(transparent)]
    Schema(#[from] Unusable),
    /// A file or folder of anchors.
    #[error("{} holds no trust anchor: {why}", path.display())]
    Anchor {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file or folder of certificates.
    #[error("{} holds no certificate: {why}", path.display())]
    Certificates {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The rules do not take an anchor.
    #[error("the trust anchor {name} is not taken: {source}")]
    Refused {
        /// Its name.
        name: Name,
        /// Why.
        source: AnchorError,
    },
    /// There is nothing to start from.
    #[error("there is no trust anchor: name files or folders of certificates")]
    NoAnchor,
    /// The list of revocations.
    #[error("{}: {why}", path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A prefix of `records`.
    #[error("records: {0}")]
    Records(#[from] onym_wire::name::UriError),
}

/// A line for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whether somebody has to do something.
    pub is_bad: bool,
    /// What happened, why, what holds now.
    pub text: String,
}

impl Notice {
    const fn good(text: String) -> Self {
        Self { is_bad: false, text }
    }

    const fn bad(text: String) -> Self {
        Self { is_bad: true, text }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a guard judges by now, and what it judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Anchors, with the last second in which each counts (since the Unix epoch).
    pub anchors: Vec<(Name, i64)>,
    /// Entries of the list of revocations.
    pub revoked: usize,
    /// Verified certificates that are kept.
    pub cached: usize,
    /// Packets that wait for certificates.
    pub waiting: usize,
    /// What was judged.
    pub counts: Counts,
}

/// A file or folder, and how it was when it was read.
#[derive(Debug, Clone)]
struct Watched {
    path: PathBuf,
    stamp: Stamp,
    /// Whether it is read again.
    again: bool,
}

impl Watched {
    fn new(path: PathBuf, again: bool) -> Self {
        let stamp = Stamp::of(&path);
        Self { path, stamp, again }
    }

    /// Whether it changed since the last look. The stamp is taken before what it stands for is read,
    /// so that a change in between is seen the next time.
    fn changed(&mut self) -> bool {
        if !self.again {
            return false;
        }
        let stamp = Stamp::of(&self.path);
        let is_new = stamp != self.stamp;
        self.stamp = stamp;
        is_new
    }

    fn group(&self) -> String {
        self.path.display().to_string()
    }
}

/// Judges by rules, anchors and revocations from files, and looks at them again.
#[derive(Debug, Clone)]
pub struct Guard {
    settings: Settings,
    validator: Validator,
    schema: Option<Watched>,
    anchors: Vec<Watched>,
    revoked: Option<Watched>,
    looked_ms: u64,
}

impl Guard {
    /// Reads what `settings` name; relative paths start at `base`.
    ///
    /// # Errors
    /// [`GuardError`] names the file, and what is wrong with it.
    pub fn open(settings: Settings, base: &Path, now_ms: u64) -> Result<Self, GuardError> {
        Self::open_with(Arc::new(Hierarchy), settings, base, now_ms)
    }

    /// As [`Guard::open`]; without a file of a schema it judges by `policy`.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn open_with(
        policy: Arc<dyn Policy>,
        settings: Settings,
        base: &Path,
        now_ms: u64,
    ) -> Result<Self, GuardError> {
        let again = settings.refresh_s > 0;
        let schema = match settings.schema.as_str() {
            "" => None,
            file => Some(Watched::new(base.join(file), again)),
        };
        let loaded = match &schema {
            Some(file) => load(file, &settings)?,
            None => Loaded { policy, anchors: Vec::new(), places: Vec::new() },
        };
        let mut anchors: Vec<Watched> =
            settings.anchors.iter().map(|path| Watched::new(base.join(path), again)).collect();
        let of_schema = loaded.places.iter();
        anchors.extend(of_schema.map(|p| Watched::new(p.path.clone(), p.refresh_s.is_some())));
        let limits = Limits {
            depth: settings.depth,
            expired_anchors: settings.expired_anchors,
            invitations: settings.invitations,
            certificate_lists: settings.certificate_lists,
            ..Limits::default()
        };
        let mut validator = Validator::new(loaded.policy, limits);
        for anchor in loaded.anchors {
            add(&mut validator, anchor)?;
        }
        for place in &anchors {
            read_anchors(&mut validator, place)?;
        }
        if validator.anchors().iter().next().is_none() && !validator.policy().allows_anything() {
            return Err(GuardError::NoAnchor);
        }
        let revoked = match settings.revoked.as_str() {
            "" => None,
            file => Some(Watched::new(base.join(file), again)),
        };
        if let Some(list) = &revoked {
            let read = read_list(&list.path);
            let why = |why| GuardError::List { path: list.path.clone(), why };
            validator.set_revoked(read.map_err(why)?);
        }
        let prefixes = settings.records.iter().map(|uri| uri.parse());
        let records = Records {
            prefixes: prefixes.collect::<Result<_, _>>()?,
            keep_ms: settings.records_s.saturating_mul(1000),
            needed: settings.records_needed,
        };
        validator.set_records(records);
        Ok(Self { settings, validator, schema, anchors, revoked, looked_ms: now_ms })
    }

    /// Judges by these rules and anchors, which no file stands behind.
    ///
    /// # Errors
    /// [`GuardError::Refused`].
    pub fn fixed(
        policy: Arc<dyn Policy>,
        anchors: Vec<Certificate>,
        limits: Limits,
    ) -> Result<Self, GuardError> {
        let mut validator = Validator::new(policy, limits);
        for anchor in anchors {
            add(&mut validator, anchor)?;
        }
        let settings = Settings { refresh_s: 0, ..Settings::of("", Vec::new()) };
        Ok(Self {
            settings,
            validator,
            schema: None,
            anchors: Vec::new(),
            revoked: None,
            looked_ms: 0,
        })
    }

    /// What it was opened with.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What judges.
    #[must_use]
    pub const fn validator(&self) -> &Validator {
        &self.validator
    }

    /// What judges.
    pub const fn validator_mut(&mut self) -> &mut Validator {
        &mut self.validator
    }

    /// What it judges by now, and what it judged.
    #[must_use]
    pub fn status(&self) -> Status {
        let validator = &self.validator;
        let anchors = validator.anchors().iter();
        Status {
            anchors: anchors.map(|a| (a.name().to_name(), a.validity().not_after.0)).collect(),
            revoked: validator.revoked().len(),
            cached: validator.cached(),
            waiting: validator.waiting(),
            counts: validator.counts(),
        }
    }

    /// When [`Guard::look`] reads again, in milliseconds since the Unix epoch; `None` is never.
    #[must_use]
    pub fn looks_at_ms(&self) -> Option<u64> {
        let every_ms = self.settings.refresh_s.checked_mul(1000).filter(|ms| *ms > 0)?;
        Some(self.looked_ms.saturating_add(every_ms))
    }

    /// Looks at the files again when it is time to, takes what changed, and tells of it. A clock
    /// that was put back does not keep it from looking.
    pub fn look(&mut self, now_ms: u64) -> Vec<Notice> {
        let every_ms = self.settings.refresh_s.saturating_mul(1000);
        if every_ms == 0 || now_ms.abs_diff(self.looked_ms) < every_ms {
            return Vec::new();
        }
        self.looked_ms = now_ms;
        let mut notices = Vec::new();
        // Revocations first: what is new in the others is judged by them.
        notices.extend(self.look_at_list());
        self.look_at_anchors(&mut notices);
        notices.extend(self.look_at_schema());
        notices
    }

    fn look_at_list(&mut self) -> Option<Notice> {
        let list = self.revoked.as_mut()?;
        if !list.changed() {
            return None;
        }
        match read_list(&list.path) {
            Ok(revoked) => {
                let entries = revoked.len();
                let is_new = self.validator.set_revoked(revoked);
                let text = format!("{}: {entries} keys and certificates are revoked", list.group());
                is_new.then(|| Notice::good(text))
            }
            Err(why) => {
                let kept = self.validator.revoked().len();
                let list = list.group();
                let text = format!("{list} is not taken: {why}; the {kept} entries before stay");
                Some(Notice::bad(text))
            }
        }
    }

    fn look_at_anchors(&mut self, notices: &mut Vec<Notice>) {
        for place in self.anchors.iter_mut() {
            if !place.changed() {
                continue;
            }
            let group = place.group();
            let found = match files::certificates(&place.path) {
                Ok(found) => found,
                Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(e) => {
                    let text = format!("{group} is not taken: {e}; its anchor before stays");
                    notices.push(Notice::bad(text));
                    continue;
                }
            };
            let change = self.validator.replace_anchors(&group, found);
            let (added, removed, refused) = (change.added, change.removed, change.refused);
            if added + removed + refused > 0 {
                let text = format!(
                    "{group}: trust anchors added {added}, removed {removed}, not taken {refused}"
                );
                notices.push(Notice { is_bad: refused > 0, text });
            }
            if removed > 0 && self.validator.anchors().iter().next().is_none() {
                let text = format!("{group} held the last trust anchor: everything is refused now");
                notices.push(Notice::bad(text));
            }
        }
    }

    fn look_at_schema(&mut self) -> Option<Notice> {
        let schema = self.schema.as_mut()?;
        if !schema.changed() {
            return None;
        }
        let file = schema.group();
        let taken = load(schema, &self.settings).map_err(|e| e.to_string());
        let taken = taken.and_then(|loaded| {
            self.validator.set_policy(loaded.policy).map_err(|e| format!("{file}: {e}"))
        });
        Some(match taken {
            Ok(()) => Notice::good(format!("{file}: packets are judged by its new rules")),
            Err(why) => Notice::bad(format!("{why}; the rules before stay")),
        })
    }
}

fn load(file: &Watched, settings: &Settings) -> Result<Loaded, Unusable> {
    schema::load(&file.path, &settings.section, settings.objects.into())
}

/// The certificate of a file, or those of a folder, in which other files are passed over.
///
/// # Errors
/// [`GuardError::Certificates`] names what cannot be read.
pub fn certificates(path: &Path) -> Result<Vec<Certificate>, GuardError> {
    files::certificates(path)
        .map_err(|e| GuardError::Certificates { path: path.to_owned(), why: e.to_string() })
}

/// The list of what is believed no longer.
///
/// # Errors
/// [`GuardError::List`] says what is wrong with it.
pub fn revoked(path: &Path) -> Result<Revoked, GuardError> {
    read_list(path).map_err(|why| GuardError::List { path: path.to_owned(), why })
}

fn add(validator: &mut Validator, anchor: Certificate) -> Result<(), GuardError> {
    let name = anchor.name().to_name();
    validator.add_anchor(anchor).map_err(|source| GuardError::Refused { name, source })
}

fn read_anchors(validator: &mut Validator, place: &Watched) -> Result<(), GuardError> {
    let why = |why: String| GuardError::Anchor { path: place.path.clone(), why };
    let found = files::certificates(&place.path).map_err(|e| why(e.to_string()))?;
    for anchor in &found {
        validator
            .policy()
            .anchor(anchor.name())
            .map_err(|denial| why(format!("the rules do not take {}: {denial}", anchor.name())))?;
    }
    validator.replace_anchors(&place.group(), found);
    Ok(())
}

fn read_list(path: &Path) -> Result<Revoked, String> {
    let text = files::text(path, LIST_MAX).map_err(|e| e.to_string())?;
    Revoked::parse(&text).map_err(|e: ListError| e.to_string())
}
