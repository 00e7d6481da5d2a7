//! A model of the rings of `rtrb`: the same orderings of its two positions, with the atomics and
//! locks of a checker.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use std::cell::OnceCell;
use std::marker::PhantomData;

#[derive(Debug)]
struct Shared<T> {
    slots: Vec<Mutex<Option<T>>>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

impl<T> Shared<T> {
    fn slot(&self, position: usize) -> &Mutex<Option<T>> {
        &self.slots[position % self.slots.len()]
    }
}

/// Makes rings.
#[derive(Debug)]
pub struct RingBuffer<T>(PhantomData<T>);

impl<T> RingBuffer<T> {
    /// The ends of a ring for so many items.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(capacity: usize) -> (Producer<T>, Consumer<T>) {
        let slots = (0..capacity).map(|_| Mutex::new(None)).collect();
        let (head, tail) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared { slots, head, tail });
        (
            Producer { shared: Arc::clone(&shared), tail: 0 },
            Consumer { shared, head: 0, front: OnceCell::new() },
        )
    }
}

/// The writing end.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
}

impl<T> Producer<T> {
    /// Places that are free.
    pub fn slots(&self) -> usize {
        self.shared.slots.len() - (self.tail - self.shared.head.load(Ordering::Acquire))
    }

    /// Whether there is no place.
    pub fn is_full(&self) -> bool {
        self.slots() == 0
    }

    /// Puts an item in, or returns it.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        *self.shared.slot(self.tail).lock().unwrap() = Some(item);
        self.tail += 1;
        self.shared.tail.store(self.tail, Ordering::Release);
        Ok(())
    }
}

/// Nothing is there.
#[derive(Debug)]
pub struct Empty;

/// The reading end.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    /// The next item, once it was looked at.
    front: OnceCell<T>,
}

impl<T> Consumer<T> {
    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.shared.tail.load(Ordering::Acquire) == self.head
    }

    /// The next item, left where it is.
    pub fn peek(&self) -> Result<&T, Empty> {
        if self.is_empty() {
            return Err(Empty);
        }
        let next = || self.shared.slot(self.head).lock().unwrap().take().unwrap();
        Ok(self.front.get_or_init(next))
    }

    /// Takes the next item.
    pub fn pop(&mut self) -> Result<T, Empty> {
        self.peek()?;
        let item = self.front.take();
        self.head += 1;
        self.shared.head.store(self.head, Ordering::Release);
        item.ok_or(Empty)
    }
}
