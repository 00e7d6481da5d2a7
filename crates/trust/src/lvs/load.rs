//! Reading a model, with the checks that other loaders leave out.

use super::model::{
    Argument, Call, Choice, DEPTH_MAX, Model, NODES_MAX, Node, OCTETS_MAX, PatternEdge, VERSION,
    ValueEdge, typ,
};
use onym_wire::name::Component;
use onym_wire::tlv::{Element, Malformed, Reader, is_critical};

/// Why octets are not a model that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Not the TLV of a model: cut off, out of order, an unknown critical element.
    #[error("the model is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// Another version of the format.
    #[error("the model has version {0:#010x}, only {VERSION:#010x} is known")]
    Version(u32),
    /// Too large to be loaded.
    #[error("the model has more than {0}")]
    TooLarge(&'static str),
    /// A node is deeper than names can be.
    #[error("node {0} is more than {DEPTH_MAX} components deep")]
    TooDeep(u32),
    /// The start is not one of the nodes.
    #[error("the start node {0} does not exist")]
    Start(u64),
    /// The id of a node is not its position.
    #[error("node number {position} says that it is node {id}")]
    NodeId {
        /// Where it stands, from 0.
        position: usize,
        /// What it says.
        id: u64,
    },
    /// An edge leads to no node.
    #[error("an edge of node {from} leads to node {dest}, which does not exist")]
    Destination {
        /// Node of the edge.
        from: u32,
        /// Where it leads.
        dest: u64,
    },
    /// A node that is reached from another node than its parent, or the start that has one.
    #[error("node {node} is reached from node {from}, which is not its parent")]
    Parent {
        /// The node.
        node: u32,
        /// Where the edge comes from.
        from: u32,
    },
    /// The start has a parent, or an edge leads back to it.
    #[error("the start of the model has a parent or an edge that leads to it")]
    StartReached,
    /// More than one edge leads to a node.
    #[error("more than one edge leads to node {0}")]
    ReachedTwice(u32),
    /// No edge leads to a node.
    #[error("node {0} cannot be reached from the start")]
    Unreachable(u32),
    /// A signer is not one of the nodes.
    #[error("node {node} may be signed by node {signer}, which does not exist")]
    Signer {
        /// The node.
        node: u32,
        /// Its signer.
        signer: u64,
    },
    /// A constraint's option says nothing, or two things.
    #[error("an option of node {0} must have exactly one of value, variable and function")]
    Option(u32),
    /// A function without name.
    #[error("node {0} calls a function without name")]
    Function(u32),
    /// A text that is not UTF-8.
    #[error("the name of a rule, function or variable is not UTF-8")]
    Text,
    /// A number that is out of its range: a variable 0, a symbol of no variable.
    #[error("variable {0} is not one of the model")]
    Variable(u64),
    /// A rule is signed, over any number of steps, by itself.
    #[error("rules sign each other in a circle: {0}; such a chain ends at no anchor")]
    SigningCycle(String),
}

impl Model {
    /// Reads a model and checks it whole.
    ///
    /// # Errors
    /// [`LoadError`] says what is wrong; nothing wrong is dropped in silence.
    pub fn decode(octets: &[u8]) -> Result<Self, LoadError> {
        decode(octets)
    }

    /// Whether this model holds together. A model that was decoded does.
    ///
    /// # Errors
    /// As [`Model::decode`].
    pub fn check(&self) -> Result<(), LoadError> {
        check(self)
    }
}

/// A cursor that skips unknown elements that may be ignored.
struct Fields<'a> {
    reader: Reader<'a>,
    known: &'static [u32],
}

impl<'a> Fields<'a> {
    fn new(value: &'a [u8], known: &'static [u32]) -> Self {
        Self { reader: Reader::new(value), known }
    }

    fn peek(&mut self) -> Result<Option<Element<'a>>, Malformed> {
        while !self.reader.is_empty() {
            let (element, _) = Element::split(self.reader.rest())?;
            if self.known.contains(&element.typ) {
                return Ok(Some(element));
            }
            if is_critical(element.typ) {
                return Err(Malformed::UnknownCritical(element.typ));
            }
            self.reader.element()?;
        }
        Ok(None)
    }

    fn optional(&mut self, wanted: u32) -> Result<Option<Element<'a>>, Malformed> {
        match self.peek()? {
            Some(element) if element.typ == wanted => self.reader.element().map(Some),
            _ => Ok(None),
        }
    }

    fn expect(&mut self, wanted: u32) -> Result<Element<'a>, Malformed> {
        self.optional(wanted)?.ok_or(Malformed::Missing(wanted))
    }

    fn finish(mut self) -> Result<(), Malformed> {
        match self.peek()? {
            Some(element) => Err(Malformed::OutOfOrder(element.typ)),
            None => Ok(()),
        }
    }
}

fn text(element: Element<'_>) -> Result<String, LoadError> {
    String::from_utf8(element.value.to_vec()).map_err(|_| LoadError::Text)
}

fn component(element: Element<'_>) -> Result<Vec<u8>, LoadError> {
    match Component::split(element.value)? {
        (_, []) => Ok(element.value.to_vec()),
        _ => Err(Malformed::Trailing.into()),
    }
}

fn tag(element: Element<'_>) -> Result<u32, LoadError> {
    let number = element.nni()?;
    match u32::try_from(number) {
        Ok(tag) if tag > 0 => Ok(tag),
        _ => Err(LoadError::Variable(number)),
    }
}

fn decode(octets: &[u8]) -> Result<Model, LoadError> {
    if octets.len() > OCTETS_MAX {
        return Err(LoadError::TooLarge("16 MiB"));
    }
    let known = &[typ::VERSION, typ::NODE_ID, typ::NAMED, typ::NODE, typ::SYMBOL];
    let mut fields = Fields::new(octets, known);
    let version = fields.expect(typ::VERSION)?;
    match <[u8; 4]>::try_from(version.value).map(u32::from_be_bytes) {
        Ok(VERSION) => {}
        Ok(other) => return Err(LoadError::Version(other)),
        Err(_) => return Err(Malformed::Length(typ::VERSION).into()),
    }
    let start = fields.expect(typ::NODE_ID)?.nni()?;
    let named = fields.expect(typ::NAMED)?.nni()?;
    let mut model = Model {
        start: u32::try_from(start).map_err(|_| LoadError::Start(start))?,
        named: u32::try_from(named).map_err(|_| LoadError::Variable(named))?,
        nodes: Vec::new(),
        symbols: Vec::new(),
    };
    while let Some(element) = fields.optional(typ::NODE)? {
        if model.nodes.len() >= NODES_MAX {
            return Err(LoadError::TooLarge("131072 nodes"));
        }
        let node = node(model.nodes.len(), element.value)?;
        model.nodes.push(node);
    }
    while let Some(element) = fields.optional(typ::SYMBOL)? {
        let mut inner = Fields::new(element.value, &[typ::TAG, typ::IDENTIFIER]);
        let tag = tag(inner.expect(typ::TAG)?)?;
        let name = text(inner.expect(typ::IDENTIFIER)?)?;
        inner.finish()?;
        if tag > model.named || model.symbols.iter().any(|(other, _)| *other == tag) {
            return Err(LoadError::Variable(u64::from(tag)));
        }
        model.symbols.push((tag, name));
    }
    fields.finish()?;
    check(&model)?;
    Ok(model)
}

fn node(position: usize, value: &[u8]) -> Result<Node, LoadError> {
    let known = &[
        typ::NODE_ID,
        typ::PARENT,
        typ::IDENTIFIER,
        typ::VALUE_EDGE,
        typ::PATTERN_EDGE,
        typ::SIGNER,
    ];
    let mut fields = Fields::new(value, known);
    let id = fields.expect(typ::NODE_ID)?.nni()?;
    let own = u32::try_from(id).ok().filter(|_| id == position as u64);
    let Some(own) = own else { return Err(LoadError::NodeId { position, id }) };
    let mut node = Node::default();
    if let Some(parent) = fields.optional(typ::PARENT)? {
        let parent = parent.nni()?;
        // A parent that is no node is the parent of no edge: found by the check of edges.
        node.parent = Some(u32::try_from(parent).unwrap_or(u32::MAX));
    }
    while let Some(rule) = fields.optional(typ::IDENTIFIER)? {
        node.rules.push(text(rule)?);
    }
    while let Some(edge) = fields.optional(typ::VALUE_EDGE)? {
        let mut inner = Fields::new(edge.value, &[typ::NODE_ID, typ::VALUE]);
        let dest = destination(own, inner.expect(typ::NODE_ID)?)?;
        let component = component(inner.expect(typ::VALUE)?)?;
        inner.finish()?;
        node.values.push(ValueEdge { dest, component });
    }
    while let Some(edge) = fields.optional(typ::PATTERN_EDGE)? {
        node.patterns.push(pattern(own, edge.value)?);
    }
    while let Some(signer) = fields.optional(typ::SIGNER)? {
        let signer = signer.nni()?;
        let known = u32::try_from(signer).map_err(|_| LoadError::Signer { node: own, signer })?;
        node.signers.push(known);
    }
    fields.finish()?;
    Ok(node)
}

fn destination(from: u32, element: Element<'_>) -> Result<u32, LoadError> {
    let dest = element.nni()?;
    u32::try_from(dest).map_err(|_| LoadError::Destination { from, dest })
}

fn pattern(own: u32, value: &[u8]) -> Result<PatternEdge, LoadError> {
    let mut fields = Fields::new(value, &[typ::NODE_ID, typ::TAG, typ::CONSTRAINT]);
    let dest = destination(own, fields.expect(typ::NODE_ID)?)?;
    let tag = tag(fields.expect(typ::TAG)?)?;
    let mut constraints = Vec::new();
    while let Some(constraint) = fields.optional(typ::CONSTRAINT)? {
        let mut inner = Fields::new(constraint.value, &[typ::OPTION]);
        let mut choices = Vec::new();
        while let Some(option) = inner.optional(typ::OPTION)? {
            choices.push(choice(own, option.value)?);
        }
        inner.finish()?;
        constraints.push(choices);
    }
    fields.finish()?;
    Ok(PatternEdge { dest, tag, constraints })
}

fn choice(own: u32, value: &[u8]) -> Result<Choice, LoadError> {
    let mut fields = Fields::new(value, &[typ::VALUE, typ::TAG, typ::CALL]);
    let found = match fields.peek()? {
        Some(e) if e.typ == typ::VALUE => Choice::Value(component(fields.expect(typ::VALUE)?)?),
        Some(e) if e.typ == typ::TAG => Choice::Tag(tag(fields.expect(typ::TAG)?)?),
        Some(_) => Choice::Call(call(own, fields.expect(typ::CALL)?.value)?),
        None => return Err(LoadError::Option(own)),
    };
    match fields.peek()? {
        Some(_) => Err(LoadError::Option(own)),
        None => Ok(found),
    }
}

fn call(own: u32, value: &[u8]) -> Result<Call, LoadError> {
    let mut fields = Fields::new(value, &[typ::FUNCTION, typ::ARGUMENT]);
    let function = text(fields.expect(typ::FUNCTION)?)?;
    if function.is_empty() {
        return Err(LoadError::Function(own));
    }
    let mut arguments = Vec::new();
    while let Some(argument) = fields.optional(typ::ARGUMENT)? {
        let mut inner = Fields::new(argument.value, &[typ::VALUE, typ::TAG]);
        let found = match (inner.optional(typ::VALUE)?, inner.optional(typ::TAG)?) {
            (Some(value), None) => Argument::Value(component(value)?),
            (None, Some(element)) => Argument::Tag(tag(element)?),
            _ => return Err(LoadError::Option(own)),
        };
        if inner.peek()?.is_some() {
            return Err(LoadError::Option(own));
        }
        arguments.push(found);
    }
    fields.finish()?;
    Ok(Call { function, arguments })
}

/// The laws of a model beyond its grammar: a tree, and signers that end somewhere.
fn check(model: &Model) -> Result<(), LoadError> {
    let Some(start) = model.node(model.start) else {
        return Err(LoadError::Start(u64::from(model.start)));
    };
    if start.parent.is_some() {
        return Err(LoadError::StartReached);
    }
    // Each variable is in a name: more of them than nodes would only cost memory.
    if usize::try_from(model.named).is_ok_and(|named| named > model.nodes.len()) {
        return Err(LoadError::Variable(u64::from(model.named)));
    }
    let mut reached = vec![false; model.nodes.len()];
    let mut stack = vec![(model.start, 0)];
    while let Some((id, depth)) = stack.pop() {
        let Some(node) = model.node(id) else { continue };
        if depth > DEPTH_MAX {
            return Err(LoadError::TooDeep(id));
        }
        let values = node.values.iter().map(|edge| edge.dest);
        for dest in values.chain(node.patterns.iter().map(|edge| edge.dest)) {
            if dest == model.start {
                return Err(LoadError::StartReached);
            }
            let slot = usize::try_from(dest).ok().and_then(|at| reached.get_mut(at));
            let (Some(child), Some(slot)) = (model.node(dest), slot) else {
                return Err(LoadError::Destination { from: id, dest: u64::from(dest) });
            };
            if std::mem::replace(slot, true) {
                return Err(LoadError::ReachedTwice(dest));
            }
            if child.parent != Some(id) {
                return Err(LoadError::Parent { node: dest, from: id });
            }
            stack.push((dest, depth + 1));
        }
    }
    for (id, _) in (0_u32..).zip(&reached).filter(|(_, reached)| !**reached) {
        if id != model.start {
            return Err(LoadError::Unreachable(id));
        }
    }
    for (id, node) in (0_u32..).zip(&model.nodes) {
        if let Some(signer) = node.signers.iter().find(|s| model.node(**s).is_none()) {
            return Err(LoadError::Signer { node: id, signer: u64::from(*signer) });
        }
    }
    signing_cycle(model)
}

/// Follows signers depth first; a node met again on the way there closes a circle.
fn signing_cycle(model: &Model) -> Result<(), LoadError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        New,
        Open,
        Done,
    }
    let mut seen = vec![Seen::New; model.nodes.len()];
    for first in 0..model.nodes.len() {
        // The way there: each node with how many of its signers were followed.
        let mut way = vec![(first, 0_usize)];
        while let Some((at, next)) = way.last_mut() {
            let (at, followed) = (*at, *next);
            *next += 1;
            let (Some(node), Some(state)) = (model.nodes.get(at), seen.get_mut(at)) else { break };
            if followed == 0 && *state == Seen::Done {
                way.pop();
                continue;
            }
            *state = Seen::Open;
            let Some(signer) = node.signers.get(followed) else {
                *state = Seen::Done;
                way.pop();
                continue;
            };
            let signer = usize::try_from(*signer).unwrap_or(usize::MAX);
            match seen.get(signer) {
                Some(Seen::Open) => return Err(cycle(model, &way, signer)),
                Some(Seen::New) => way.push((signer, 0)),
                _ => {}
            }
        }
    }
    Ok(())
}

fn cycle(model: &Model, way: &[(usize, usize)], closed: usize) -> LoadError {
    let from = way.iter().position(|(at, _)| *at == closed).unwrap_or(0);
    let ids = way.iter().skip(from).map(|(at, _)| *at).chain([closed]);
    let names: Vec<String> = ids
        .map(|at| match model.nodes.get(at).and_then(|node| node.rules.first()) {
            Some(rule) => rule.clone(),
            None => format!("node {at}"),
        })
        .collect();
    LoadError::SigningCycle(names.join(" <= "))
}
