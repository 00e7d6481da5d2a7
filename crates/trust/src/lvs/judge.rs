//! A schema as the rules of a validator.

use super::matcher::TooCostly;
use super::schema::{Schema, too_costly};
use super::why;
use crate::policy::{Cause, Denial, KeyForm, Policy, Subject, Verdict};
use onym_wire::NameRef;

impl Policy for Schema {
    fn check(&self, subject: &Subject<'_>, key: NameRef<'_>) -> Verdict {
        match self.signs(subject.name, key) {
            Ok(Some(node)) => Verdict::Allowed { rule: self.rules_of(node) },
            Ok(None) => Verdict::Denied(why::denial(self, self.subject(subject.name), key)),
            Err(TooCostly) => Verdict::Denied(too_costly()),
        }
    }

    fn key_form(&self) -> KeyForm {
        KeyForm::Certificate
    }

    fn anchor(&self, certificate: NameRef<'_>) -> Result<(), Denial> {
        let matched = self.matches(certificate).map_err(|TooCostly| too_costly())?;
        if self.model.root_nodes().any(|root| matched.contains(&root)) {
            return Ok(());
        }
        let roots = self.model.roots().join(", ");
        let text = if roots.is_empty() {
            "the schema has no rule that is a root of trust".to_owned()
        } else {
            format!("{certificate} follows none of the roots of trust: {roots}")
        };
        Err(Denial { cause: Cause::NoRule, rule: None, text })
    }

    fn allows_digest(&self, _: &Subject<'_>) -> bool {
        false
    }

    fn explain(&self, subject: &Subject<'_>) -> Vec<String> {
        why::explain(self, self.subject(subject.name))
    }
}
