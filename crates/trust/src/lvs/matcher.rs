//! Walking a name through the tree of a model.

use super::functions::Functions;
use super::model::{Argument, Choice, Model, Node, PatternEdge};
use onym_wire::NameRef;
use smallvec::SmallVec;

/// Most edges and options that one question may look at: a schema in which nearly every name
/// matches nearly every rule ends here instead of taking the machine.
pub const STEPS_MAX: usize = 200_000;

/// Value edges that are compared for the price of one step.
const EDGES_A_STEP: usize = 8;

/// The component elements of a name, without an implicit digest at its end.
pub(super) type Elements<'a> = SmallVec<[&'a [u8]; 16]>;

pub(super) fn elements(name: NameRef<'_>) -> Elements<'_> {
    let digest = name.last().is_some_and(|last| last.is_implicit_digest());
    let name = name.drop_last(usize::from(digest));
    let mut found = Elements::new();
    let mut rest = name.value();
    for component in name.components() {
        let Some((element, behind)) = rest.split_at_checked(component.wire_len()) else { break };
        found.push(element);
        rest = behind;
    }
    found
}

/// The question was too costly to answer: [`STEPS_MAX`] was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooCostly;

/// What a component must fulfil whose variable is bound already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoundAgain {
    /// It equals the value.
    EqualityOnly,
    /// And the constraints of its edge.
    Constraints,
}

/// The variables with their values, and what may still be spent.
pub(super) struct Walk<'a> {
    pub(super) model: &'a Model,
    pub(super) functions: &'a Functions,
    pub(super) bound_again: BoundAgain,
    /// Values of variables 1, 2, …
    pub(super) bound: SmallVec<[Option<&'a [u8]>; 16]>,
    pub(super) steps: usize,
}

/// Called with each node that the whole name leads to; says whether to stop there.
pub(super) type Visit<'v, 'a> = dyn FnMut(&mut Walk<'a>, u32) -> Result<bool, TooCostly> + 'v;

impl<'a> Walk<'a> {
    pub(super) fn new(model: &'a Model, functions: &'a Functions, bound_again: BoundAgain) -> Self {
        // Bounded: a model has no more variables than nodes.
        let bound = smallvec::smallvec![None; usize::try_from(model.named).unwrap_or(0)];
        Self { model, functions, bound_again, bound, steps: 0 }
    }

    /// Visits every node that `name` leads to from `node`, its value edge first. Afterwards the
    /// variables are as before, unless a visit stopped the walk.
    pub(super) fn visit(
        &mut self,
        node: u32,
        name: &[&'a [u8]],
        visit: &mut Visit<'_, 'a>,
    ) -> Result<bool, TooCostly> {
        let Some(at) = self.model.node(node) else { return Ok(false) };
        let Some((first, rest)) = name.split_first() else { return visit(self, node) };
        self.spend(1 + at.values.len() / EDGES_A_STEP)?;
        if let Some(dest) = literal(at, first)
            && self.visit(dest, rest, visit)?
        {
            return Ok(true);
        }
        for edge in &at.patterns {
            self.spend(1)?;
            if !self.accepts(edge, first)? {
                continue;
            }
            let binds = self.value(edge.tag).is_none() && self.bind(edge.tag, Some(first));
            if self.visit(edge.dest, rest, visit)? {
                return Ok(true);
            }
            if binds {
                self.bind(edge.tag, None);
            }
        }
        Ok(false)
    }

    fn spend(&mut self, steps: usize) -> Result<(), TooCostly> {
        self.steps += steps;
        if self.steps > STEPS_MAX { Err(TooCostly) } else { Ok(()) }
    }

    pub(super) fn value(&self, tag: u32) -> Option<&'a [u8]> {
        self.bound.get(slot(tag)?).copied().flatten()
    }

    /// Sets a variable that is remembered; says whether it is.
    pub(super) fn bind(&mut self, tag: u32, value: Option<&'a [u8]>) -> bool {
        match slot(tag).and_then(|at| self.bound.get_mut(at)) {
            Some(place) => {
                *place = value;
                true
            }
            None => false,
        }
    }

    /// Whether the edge takes this component with the variables as they are.
    pub(super) fn accepts(
        &mut self,
        edge: &PatternEdge,
        first: &'a [u8],
    ) -> Result<bool, TooCostly> {
        if let Some(value) = self.value(edge.tag) {
            if value != first {
                return Ok(false);
            }
            if self.bound_again == BoundAgain::EqualityOnly {
                return Ok(true);
            }
        }
        for choices in &edge.constraints {
            if !self.any(choices, first)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn any(&mut self, choices: &[Choice], first: &[u8]) -> Result<bool, TooCostly> {
        for choice in choices {
            self.spend(1)?;
            let holds = match choice {
                Choice::Value(component) => component == first,
                Choice::Tag(tag) => self.value(*tag).is_some_and(|value| value == first),
                Choice::Call(call) => {
                    let arguments: SmallVec<[&[u8]; 4]> = call
                        .arguments
                        .iter()
                        .filter_map(|argument| match argument {
                            Argument::Value(component) => Some(component.as_slice()),
                            Argument::Tag(tag) => self.value(*tag),
                        })
                        .collect();
                    self.functions.call(&call.function, first, &arguments)
                }
            };
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where the value edge for this component leads. Few nodes have more than a handful.
fn literal(node: &Node, component: &[u8]) -> Option<u32> {
    node.values.iter().find(|edge| edge.component == component).map(|edge| edge.dest)
}

fn slot(tag: u32) -> Option<usize> {
    usize::try_from(tag).ok()?.checked_sub(1)
}
