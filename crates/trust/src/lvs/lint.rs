//! Lints: legal in a schema, but probably not meant.

use super::chain::{CompileError, Mode};
use super::compile::compile;
use super::model::{Choice, Model};
use super::text::{self, Part, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Line in the text, from 1; 0 when it is about the whole.
    pub line: usize,
    /// What, why it matters, and what to write instead.
    pub text: String,
}

/// Looks a schema's text over.
///
/// # Errors
/// When it does not compile.
pub fn lint(text: &str) -> Result<Vec<Finding>, CompileError> {
    let model = compile(text, Mode::Strict)?;
    let exact = compile(text, Mode::Exact)?;
    let rules = text::parse(text)?;
    let mut findings = Vec::new();
    if model != exact {
        findings.push(Finding {
            line: 0,
            text:
                "a rule with a constrained temporary variable is inlined twice: python-ndn loses \
                   the second constraint, here it is kept"
                    .into(),
        });
    }
    literals_of_periods(&rules, &mut findings);
    constraints_on_bound(&rules, &mut findings);
    unsigned(&rules, &mut findings);
    for function in model.functions() {
        let text = format!("{function}: ndnd ends with a panic where a schema calls a function");
        findings.push(Finding { line: 0, text });
    }
    roots(&model, &mut findings);
    Ok(findings)
}

fn literals_of_periods(rules: &[Rule], findings: &mut Vec<Finding>) {
    for rule in rules {
        let is_periods = |part: &&Part| match part {
            Part::Literal(octets) => {
                let value = octets.get(2..).unwrap_or_default();
                !value.is_empty() && value.iter().all(|octet| *octet == b'.')
            }
            _ => false,
        };
        if rule.name.iter().any(|part| is_periods(&part)) {
            let text = "a literal of periods stands for these periods in python-ndn and for fewer \
                        in NDNts: avoid it";
            findings.push(Finding { line: rule.line, text: text.into() });
        }
    }
}

/// A constraint on a variable that the packet's rule binds already is not evaluated by peers.
fn constraints_on_bound(rules: &[Rule], findings: &mut Vec<Finding>) {
    let variables = |rule: &Rule| -> BTreeSet<String> {
        let names = rule.name.iter().filter_map(|part| match part {
            Part::Variable(id) if !id.starts_with('_') => Some(id.clone()),
            _ => None,
        });
        names.collect()
    };
    let by_id: BTreeMap<&str, &Rule> = rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
    for packet in rules {
        let bound = variables(packet);
        for signer in packet.signers.iter().filter_map(|id| by_id.get(id.as_str())) {
            for term in signer.sets.iter().flatten() {
                if bound.contains(&term.variable) {
                    let text = format!(
                        "{}: {} is bound by {} before the key is looked at, so python-ndn and ndnd \
                         do not evaluate this constraint; write it on {} too, or use a variable \
                         that starts with _",
                        signer.id, term.variable, packet.id, packet.id
                    );
                    let finding = Finding { line: term.line, text };
                    if !findings.contains(&finding) {
                        findings.push(finding);
                    }
                }
            }
        }
    }
}

/// Rules that nobody signs, inlines or is signed by.
fn unsigned(rules: &[Rule], findings: &mut Vec<Finding>) {
    let mut used = BTreeSet::new();
    for rule in rules {
        used.extend(rule.signers.iter().map(String::as_str));
        used.extend(rule.name.iter().filter_map(|part| match part {
            Part::Rule(id) => Some(id.as_str()),
            _ => None,
        }));
    }
    let signed: BTreeSet<&str> =
        rules.iter().filter(|rule| !rule.signers.is_empty()).map(|r| r.id.as_str()).collect();
    for rule in rules {
        let id = rule.id.as_str();
        if !used.contains(id) && !signed.contains(id) {
            let text = format!("{id} has no signer and signs nothing: such packets never pass");
            findings.push(Finding { line: rule.line, text });
        }
    }
}

fn roots(model: &Model, findings: &mut Vec<Finding>) {
    let roots = model.roots();
    let mut add = |text: String| findings.push(Finding { line: 0, text });
    if roots.is_empty() {
        add("no rule is a root of trust: nothing can be believed".into());
    }
    if roots.len() > 1 {
        let roots = roots.join(", ");
        add(format!(
            "several roots of trust ({roots}): python-ndn wants an anchor that follows all"
        ));
    }
    let edges = model.nodes.iter().flat_map(|node| &node.patterns);
    let mut choices = edges.flat_map(|edge| edge.constraints.iter().flatten());
    if choices.any(|choice| matches!(choice, Choice::Tag(_))) {
        add("a constraint names a variable: NDNts gives it a value where python-ndn and ndnd \
             refuse one without value"
            .into());
    }
}
