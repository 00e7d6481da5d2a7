//! User functions: what a schema may ask about a component beyond equality.

use onym_wire::name::Component;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A user function: the component that a variable would take, and the arguments. An argument that
/// is a variable without value is left out.
pub type Function = dyn Fn(Component<'_>, &[Component<'_>]) -> bool + Send + Sync;

/// The functions that schemas may call, by name.
///
/// A schema that calls another one is refused when it is loaded; a function that panics counts as
/// one that says no.
#[derive(Clone)]
pub struct Functions {
    known: BTreeMap<String, Arc<Function>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

impl Default for Functions {
    /// `$eq(…)`: equals every argument. `$eq_type(…)`: has the type of every argument.
    fn default() -> Self {
        let mut functions = Self::none();
        functions.insert("$eq", |value, arguments| arguments.iter().all(|a| *a == value));
        functions.insert("$eq_type", |value, arguments| {
            arguments.iter().all(|argument| argument.typ == value.typ)
        });
        functions
    }
}

impl Functions {
    /// No functions at all.
    #[must_use]
    pub const fn none() -> Self {
        Self { known: BTreeMap::new() }
    }

    /// Adds a function; `name` has its `$`. One of the same name is replaced.
    pub fn insert(
        &mut self,
        name: &str,
        function: impl Fn(Component<'_>, &[Component<'_>]) -> bool + Send + Sync + 'static,
    ) -> &mut Self {
        self.known.insert(name.to_owned(), Arc::new(function));
        self
    }

    /// Whether there is a function of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// What the function says; an absent one, or one that panics, says no.
    pub(super) fn call(&self, name: &str, value: &[u8], arguments: &[&[u8]]) -> bool {
        let (Some(function), Some(value)) = (self.known.get(name), component(value)) else {
            return false;
        };
        let arguments: Vec<Component<'_>> =
            arguments.iter().filter_map(|argument| component(argument)).collect();
        catch_unwind(AssertUnwindSafe(|| function(value, &arguments))).unwrap_or(false)
    }
}

fn component(element: &[u8]) -> Option<Component<'_>> {
    Component::split(element).ok().map(|(component, _)| component)
}
