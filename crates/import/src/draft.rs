//! The configuration as it is being written.

use crate::{Imported, Note};
use toml::{Table, Value};

#[derive(Debug, Default)]
pub(crate) struct Draft {
    table: Table,
    notes: Vec<Note>,
}

impl Draft {
    /// Sets a key by its path, `cs.packets_max`.
    pub(crate) fn set(&mut self, path: &str, value: impl Into<Value>) {
        let (tables, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = &mut self.table;
        for name in tables.split('.').filter(|name| !name.is_empty()) {
            let next = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
            match next {
                Value::Table(inner) => table = inner,
                // No path of ours leads through a value.
                _ => return,
            }
        }
        table.insert(key.to_owned(), value.into());
    }

    /// Sets the value of a name in the table `strategy`, whose keys are names.
    pub(crate) fn strategy(&mut self, prefix: &str, strategy: &str) {
        let all = self.table.entry("strategy").or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(all) = all {
            all.insert(prefix.to_owned(), strategy.into());
        }
    }

    /// Adds an entry to a list of tables, `routing.neighbour`.
    pub(crate) fn push(&mut self, path: &str, entry: Table) {
        let mut list = match self.get(path) {
            Some(Value::Array(list)) => list.clone(),
            _ => Vec::new(),
        };
        list.push(Value::Table(entry));
        self.set(path, list);
    }

    fn get(&self, path: &str) -> Option<&Value> {
        let mut names = path.split('.');
        let first = self.table.get(names.next()?);
        names.try_fold(first?, |value, name| value.get(name))
    }

    pub(crate) fn note(&mut self, line: usize, text: impl Into<String>) {
        self.notes.push(Note { line, text: text.into() });
    }

    pub(crate) fn finish(mut self) -> Imported {
        self.notes.sort_by_key(|note| note.line);
        Imported { table: self.table, notes: self.notes }
    }
}
