//! The automaton of a pattern: all ways are followed at once, one component at a time.

use super::item::{Item, Test, shown};
use onym_wire::{Name, NameRef};
use std::rc::Rc;
use std::sync::Arc;

/// Most instructions of a program.
const INSTRUCTIONS_MAX: usize = 8192;

/// Longest name that is matched, in components; longer ones match nothing.
const COMPONENTS_MAX: usize = 512;

#[derive(Debug, Clone)]
pub(super) enum Instruction {
    Take(Test),
    /// Go on at both, the first one preferred.
    Split(usize, usize),
    Jump(usize),
    /// Remember the position in this slot.
    Save(usize),
    Done,
}

#[derive(Debug, Clone)]
pub(super) struct Program {
    instructions: Arc<[Instruction]>,
    groups: usize,
}

pub(super) struct Compiler {
    instructions: Vec<Instruction>,
    groups: usize,
}

impl Compiler {
    pub(super) const fn new(groups: usize) -> Self {
        Self { instructions: Vec::new(), groups }
    }

    pub(super) fn len(&self) -> usize {
        self.instructions.len()
    }

    pub(super) fn add(&mut self, instruction: Instruction) -> Result<usize, String> {
        if self.len() >= INSTRUCTIONS_MAX {
            return Err(format!("it needs more than {INSTRUCTIONS_MAX} steps written out"));
        }
        self.instructions.push(instruction);
        Ok(self.len() - 1)
    }

    pub(super) fn set(&mut self, at: usize, instruction: Instruction) {
        if let Some(place) = self.instructions.get_mut(at) {
            *place = instruction;
        }
    }

    pub(super) fn item(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::One(test) => {
                self.add(Instruction::Take(test.clone()))?;
            }
            Item::Group(number, items) => {
                self.add(Instruction::Save(2 * number))?;
                for item in items {
                    self.item(item)?;
                }
                self.add(Instruction::Save(2 * number + 1))?;
            }
            Item::Repeat { item, least, most } => {
                for _ in 0..*least {
                    self.item(item)?;
                }
                match most {
                    None => self.star(item)?,
                    Some(most) => self.options(item, most - least)?,
                }
            }
        }
        Ok(())
    }

    fn star(&mut self, item: &Item) -> Result<(), String> {
        let split = self.add(Instruction::Split(0, 0))?;
        self.item(item)?;
        self.add(Instruction::Jump(split))?;
        self.set(split, Instruction::Split(split + 1, self.len()));
        Ok(())
    }

    fn options(&mut self, item: &Item, count: usize) -> Result<(), String> {
        let mut splits = Vec::with_capacity(count);
        for _ in 0..count {
            splits.push(self.add(Instruction::Split(0, 0))?);
            self.item(item)?;
        }
        let end = self.len();
        for split in splits {
            self.set(split, Instruction::Split(split + 1, end));
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Program, String> {
        self.add(Instruction::Done)?;
        Ok(Program { instructions: self.instructions.into(), groups: self.groups })
    }
}

/// The positions of groups on one way; shared until it changes.
type Slots = Rc<Vec<Option<usize>>>;

/// Ways that reached an instruction, best first; each instruction at most once.
struct Threads {
    list: Vec<(usize, Slots)>,
    seen: Vec<bool>,
}

impl Program {
    pub(super) const fn groups(&self) -> usize {
        self.groups
    }

    /// The groups of the best way through the whole name.
    pub(super) fn run(&self, name: NameRef<'_>) -> Option<Vec<Option<Name>>> {
        if name.len() > COMPONENTS_MAX {
            return None;
        }
        let texts: Vec<String> = name.components().map(shown).collect();
        let new = || Threads { list: Vec::new(), seen: vec![false; self.instructions.len()] };
        let (mut now, mut next) = (new(), new());
        self.follow(&mut now, 0, 0, Rc::new(vec![None; 2 * (self.groups + 1)]));
        for (at, text) in texts.iter().enumerate() {
            for (place, slots) in std::mem::take(&mut now.list) {
                let Some(Instruction::Take(test)) = self.instructions.get(place) else { continue };
                if !test.holds(text) {
                    continue;
                }
                let slots = mark_inner(test, at, slots);
                self.follow(&mut next, place + 1, at + 1, slots);
            }
            now.seen.fill(false);
            std::mem::swap(&mut now, &mut next);
            if now.list.is_empty() {
                return None;
            }
        }
        let is_done =
            |place: &usize| matches!(self.instructions.get(*place), Some(Instruction::Done));
        let (_, slots) = now.list.iter().find(|(place, _)| is_done(place))?;
        Some(self.groups_of(name, &texts, slots))
    }

    /// Adds what can be reached from `place` without a component, preferred ways first.
    fn follow(&self, threads: &mut Threads, place: usize, at: usize, slots: Slots) {
        let mut stack = vec![(place, slots)];
        while let Some((place, mut slots)) = stack.pop() {
            let Some(seen) = threads.seen.get_mut(place) else { continue };
            if std::mem::replace(seen, true) {
                continue;
            }
            match self.instructions.get(place) {
                Some(Instruction::Jump(to)) => stack.push((*to, slots)),
                Some(Instruction::Split(first, second)) => {
                    stack.push((*second, Rc::clone(&slots)));
                    stack.push((*first, slots));
                }
                Some(Instruction::Save(slot)) => {
                    if let Some(value) = Rc::make_mut(&mut slots).get_mut(*slot) {
                        *value = Some(at);
                    }
                    stack.push((place + 1, slots));
                }
                Some(Instruction::Take(_) | Instruction::Done) => {
                    threads.list.push((place, slots));
                }
                None => {}
            }
        }
    }

    fn groups_of(
        &self,
        name: NameRef<'_>,
        texts: &[String],
        slots: &[Option<usize>],
    ) -> Vec<Option<Name>> {
        let mut groups = vec![Some(name.to_name())];
        for number in 1..=self.groups {
            let slot = |at: usize| slots.get(at).copied().flatten();
            groups.push(match (slot(2 * number), slot(2 * number + 1)) {
                (Some(from), Some(to)) => Some(name.prefix(to).suffix(from).to_name()),
                _ => None,
            });
        }
        // Groups within components: what they found is a component of its own.
        for instruction in self.instructions.iter() {
            let Instruction::Take(Test::Regex { regex, first }) = instruction else { continue };
            for inner in 1..regex.captures_len() {
                let number = first + inner - 1;
                let at = slots.get(2 * number).copied().flatten();
                let text = at.and_then(|at| texts.get(at));
                let found = text.and_then(|text| regex.captures(text)?.get(inner));
                let component = found.and_then(|found| found.as_str().parse::<Name>().ok());
                if let (Some(place), Some(component)) = (groups.get_mut(number), component) {
                    *place = Some(component);
                }
            }
        }
        groups
    }
}

/// Remembers where an expression with groups matched: in the first slot of each of its groups.
fn mark_inner(test: &Test, at: usize, mut slots: Slots) -> Slots {
    if let Test::Regex { regex, first } = test
        && regex.captures_len() > 1
    {
        let slots = Rc::make_mut(&mut slots);
        for number in *first..first + regex.captures_len() - 1 {
            if let Some(slot) = slots.get_mut(2 * number) {
                *slot = Some(at);
            }
        }
    }
    slots
}
