//! From rules to the model, in the order of python-ndn, so that both write the same octets.
//!
//! 1. Rules are ordered so that what is inlined comes first, variables numbered in that order.
//! 2. Each rule becomes chains: one for each set of constraints and each way of its inlined rules.
//! 3. Chains are merged into a tree, depth first.

use super::chain::{
    Chain, CompileError, Constraint, Mode, Numbered, Source, Step, fault, is_temporary,
};
use super::model::{Argument, Call, Choice, DEPTH_MAX, Model};
use super::text::{self, Alternative, Part, Rule, Value};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

/// Most chains that a schema may expand to.
const CHAINS_MAX: usize = 1 << 14;

/// Compiles the text of a schema.
///
/// # Errors
/// [`CompileError`] says where and why.
pub fn compile(text: &str, mode: Mode) -> Result<Model, CompileError> {
    let (rules, named) = number(order(text::parse(text)?)?)?;
    let chains = expand(&rules, mode)?;
    let mut tree = Tree::new(mode, named.len());
    let start = tree.node(&chains, 0, None, &mut BTreeSet::new())?;
    tree.resolve_signers(&rules)?;
    let symbols = named.into_iter().map(|(name, tag)| (tag, name));
    let mut symbols: Vec<(u32, String)> = symbols.collect();
    symbols.sort_unstable();
    let named = u32::try_from(symbols.len()).unwrap_or(u32::MAX);
    let model = Model { start, named, nodes: tree.into_nodes(), symbols };
    if mode == Mode::Strict {
        model.check()?;
    }
    Ok(model)
}

/// Orders rules: those that are inlined first, otherwise from the last identifier to the first;
/// definitions of one rule stay in the order of the file.
fn order(mut rules: Vec<Rule>) -> Result<Vec<Rule>, CompileError> {
    let mut unique = 0;
    for rule in rules.iter_mut().filter(|rule| is_temporary(&rule.id)) {
        unique += 1;
        let _ = write!(rule.id, "#{unique}");
    }
    let ids: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    // How often each rule is inlined, and what each inlines.
    let mut inlined: BTreeMap<&str, usize> = ids.iter().map(|id| (*id, 0)).collect();
    let mut inlines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for rule in &rules {
        for part in &rule.name {
            let Part::Rule(id) = part else { continue };
            if is_temporary(id) {
                return fault(rule.line, format!("{id} is temporary and cannot be inlined"));
            }
            let Some(count) = inlined.get_mut(id.as_str()) else {
                return fault(rule.line, format!("{} inlines {id}, which is not defined", rule.id));
            };
            *count += 1;
            inlines.entry(&rule.id).or_default().push(id);
        }
    }
    let mut ordered: Vec<String> = Vec::with_capacity(ids.len());
    while !inlined.is_empty() {
        let free: Vec<&str> =
            inlined.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        if free.is_empty() {
            let first = rules.iter().find(|rule| inlined.contains_key(rule.id.as_str()));
            let ids: Vec<&str> = inlined.keys().copied().collect();
            let what = format!("rules refer to each other in a circle: {}", ids.join(", "));
            return fault(first.map_or(0, |rule| rule.line), what);
        }
        for id in free {
            inlined.remove(id);
            for inner in inlines.get(id).into_iter().flatten() {
                if let Some(count) = inlined.get_mut(inner) {
                    *count -= 1;
                }
            }
            ordered.push(id.to_owned());
        }
    }
    ordered.reverse();
    let places: BTreeMap<String, usize> =
        ordered.into_iter().enumerate().map(|(at, id)| (id, at)).collect();
    rules.sort_by_key(|rule| places.get(&rule.id).copied());
    Ok(rules)
}

type Named = BTreeMap<String, u32>;

fn number(rules: Vec<Rule>) -> Result<(Vec<Numbered>, Named), CompileError> {
    let mut named = Named::new();
    let mut last_temporary = 0_i64;
    let mut numbered = Vec::with_capacity(rules.len());
    for (place, rule) in rules.into_iter().enumerate() {
        let mut temporary: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut name = Vec::with_capacity(rule.name.len());
        for part in rule.name {
            name.push(match part {
                Part::Literal(component) => Step::Literal(component),
                Part::Rule(id) => Step::Rule(id),
                Part::Variable(id) if is_temporary(&id) => {
                    last_temporary -= 1;
                    temporary.entry(id).or_default().push(last_temporary);
                    Step::Tag(last_temporary)
                }
                Part::Variable(id) => {
                    let next = u32::try_from(named.len() + 1).unwrap_or(u32::MAX);
                    Step::Tag(i64::from(*named.entry(id).or_insert(next)))
                }
            });
        }
        let scope = Scope { named: &named, temporary: &temporary };
        let mut sets = Vec::with_capacity(rule.sets.len());
        for (set, terms) in rule.sets.into_iter().enumerate() {
            let mut constraints = Vec::with_capacity(terms.len());
            for (at, term) in terms.into_iter().enumerate() {
                let line = term.line;
                let constraint = scope.constraint(Source { rule: place, set, term: at }, term);
                let constraint = constraint.map_err(|what| CompileError::Rule { line, what })?;
                constraints.push(Rc::new(constraint));
            }
            sets.push(constraints);
        }
        let mut signers = rule.signers;
        signers.sort_unstable();
        numbered.push(Numbered { id: rule.id, line: rule.line, name, sets, signers });
    }
    Ok((numbered, named))
}

/// The variables that a constraint can speak of.
struct Scope<'a> {
    named: &'a Named,
    temporary: &'a BTreeMap<String, Vec<i64>>,
}

impl Scope<'_> {
    fn constraint(&self, source: Source, term: text::Term) -> Result<Constraint, String> {
        let unknown = || {
            let variable = &term.variable;
            format!("variable {variable} occurs in no name so far: constraints follow names")
        };
        let tags = if is_temporary(&term.variable) {
            self.temporary.get(&term.variable).cloned()
        } else {
            self.named.get(&term.variable).map(|tag| vec![i64::from(*tag)])
        };
        let tags = tags.ok_or_else(unknown)?;
        let mut choices = Vec::with_capacity(term.options.len());
        let mut order = String::from("{");
        for option in term.options {
            choices.push(match option {
                Alternative::Literal(component) => {
                    literal_order(&component, &mut order);
                    Choice::Value(component)
                }
                Alternative::Variable(id) => Choice::Tag(self.right(&id, &mut order)?),
                Alternative::Call { function, arguments } => {
                    let _ = write!(order, "{function}(");
                    let arguments = arguments.into_iter().map(|argument| match argument {
                        Value::Literal(component) => {
                            literal_order(&component, &mut order);
                            Ok(Argument::Value(component))
                        }
                        Value::Variable(id) => self.right(&id, &mut order).map(Argument::Tag),
                    });
                    let arguments = arguments.collect::<Result<_, String>>()?;
                    order.push(')');
                    Choice::Call(Call { function, arguments })
                }
            });
            order.push(',');
        }
        order.push('}');
        let (variable, line) = (term.variable, term.line);
        Ok(Constraint { source, line, variable, tags, choices, order })
    }

    fn right(&self, id: &str, order: &mut String) -> Result<u32, String> {
        if is_temporary(id) {
            return Err(format!("temporary variable {id} cannot stand behind a colon"));
        }
        let Some(tag) = self.named.get(id) else {
            return Err(format!(
                "variable {id} occurs in no name so far: rules are numbered from those that are \
                 inlined, and from the last identifier to the first"
            ));
        };
        let _ = write!(order, "t={tag}");
        Ok(*tag)
    }
}

fn literal_order(component: &[u8], order: &mut String) {
    order.push_str("v=");
    for octet in component {
        let _ = write!(order, "{octet:02x}");
    }
}

/// All chains, by identifier of their rule.
fn expand(rules: &[Numbered], mode: Mode) -> Result<Vec<Rc<Chain>>, CompileError> {
    let mut all: BTreeMap<&str, Vec<Chain>> = BTreeMap::new();
    let mut total = 0;
    for (place, rule) in rules.iter().enumerate() {
        let id: Rc<str> = Rc::from(rule.id.as_str());
        let empty = Chain { rule: place, id, name: Vec::new(), constraints: Vec::new() };
        let mut chains: Vec<Chain> = match rule.sets.as_slice() {
            [] => vec![empty],
            sets => {
                let with = |set: &Vec<_>| Chain { constraints: set.clone(), ..empty.clone() };
                sets.iter().map(with).collect()
            }
        };
        for step in &rule.name {
            let Step::Rule(inner) = step else {
                chains.iter_mut().for_each(|chain| chain.name.push(step.clone()));
                continue;
            };
            let inner = all.get(inner.as_str()).map(Vec::as_slice).unwrap_or_default();
            if inner.len().saturating_mul(chains.len()) > CHAINS_MAX {
                return Err(CompileError::TooLarge("16384 names"));
            }
            let joined = inner.iter().flat_map(|inner| {
                chains.iter().map(|chain| {
                    let mut chain = chain.clone();
                    chain.name.extend_from_slice(&inner.name);
                    chain.constraints.extend_from_slice(&inner.constraints);
                    chain
                })
            });
            chains = joined.collect();
        }
        if chains.iter().any(|chain| chain.name.len() > DEPTH_MAX) {
            return fault(rule.line, format!("{} has more than {DEPTH_MAX} components", rule.id));
        }
        total += chains.len();
        if total > CHAINS_MAX {
            return Err(CompileError::TooLarge("16384 names"));
        }
        all.entry(&rule.id).or_default().extend(chains);
    }
    let chains: Vec<Rc<Chain>> = all.into_values().flatten().map(Rc::new).collect();
    if mode == Mode::Strict {
        refuse_idle_constraints(rules, &chains)?;
    }
    Ok(chains)
}

/// A constraint on a variable that no name with it has would be lost without a word.
fn refuse_idle_constraints(rules: &[Numbered], chains: &[Rc<Chain>]) -> Result<(), CompileError> {
    let mut working = BTreeSet::new();
    for chain in chains {
        for constraint in &chain.constraints {
            let is_met = |step: &Step| matches!(step, Step::Tag(t) if constraint.tags.contains(t));
            if chain.name.iter().any(is_met) {
                working.insert(constraint.source);
            }
        }
    }
    for constraint in rules.iter().flat_map(|rule| rule.sets.iter().flatten()) {
        if !working.contains(&constraint.source) {
            let variable = &constraint.variable;
            let what = format!(
                "variable {variable} does not occur in this rule: the constraint has no effect"
            );
            return fault(constraint.line, what);
        }
    }
    Ok(())
}
