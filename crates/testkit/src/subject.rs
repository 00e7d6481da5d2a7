//! What a runner asks of a forwarder under test.

use crate::script::{CsSpec, Script};
use crate::wire::name::Component;
use std::time::Duration;

/// What came out of a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A frame.
    Frame(Vec<u8>),
    /// Nothing in that time.
    Nothing,
    /// The forwarder closed the face.
    Closed,
}

/// One count of verdicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// `interest`, `data`, `nack` or `frame`.
    pub kind: String,
    /// The verdict.
    pub word: String,
    /// How often.
    pub count: u64,
}

/// A forwarder that was set up for one script. Faces are numbered as in the script.
pub trait Subject {
    /// The forwarder's number of a face.
    fn face_id(&self, face: usize) -> u64;

    /// Sends a frame from the far end of a face.
    ///
    /// # Errors
    /// The face cannot carry it.
    fn send(&mut self, face: usize, frame: &[u8]) -> Result<(), String>;

    /// The next frame that the forwarder sent on a face, waiting at most `patience`.
    ///
    /// # Errors
    /// The face broke otherwise than by being closed.
    fn receive(&mut self, face: usize, patience: Duration) -> Result<Received, String>;

    /// Lets at least so much time go by.
    fn wait(&mut self, time: Duration);

    /// Lets the forwarder digest what was sent so far, before another face sends.
    fn settle(&mut self) {}

    /// Adds a route, or takes it away when `cost` is `None`.
    ///
    /// # Errors
    /// The forwarder refuses.
    fn route(&mut self, prefix: &[Component], face: usize, cost: Option<u64>)
    -> Result<(), String>;

    /// Chooses a strategy by the last components of its name.
    ///
    /// # Errors
    /// The forwarder refuses.
    fn strategy(&mut self, prefix: &[Component], strategy: &str) -> Result<(), String>;

    /// Changes the content store.
    ///
    /// # Errors
    /// The forwarder refuses.
    fn cs(&mut self, spec: &CsSpec) -> Result<(), String>;

    /// Closes a face from its far end.
    ///
    /// # Errors
    /// It cannot be closed.
    fn close(&mut self, face: usize) -> Result<(), String>;

    /// All verdicts counted since the script began, if the subject shows them.
    fn verdicts(&mut self) -> Option<Vec<Count>>;

    /// Laws that hold whatever the script was, checked at its end.
    ///
    /// # Errors
    /// The law that does not hold.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Unix time in milliseconds, for signed commands.
    fn now_ms(&self) -> u64;

    /// How long an expected packet may take.
    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// How often a counter that does not fit yet is looked at again before it is wrong.
    fn counter_tries(&self) -> u32 {
        1
    }
}

/// A kind of forwarder that scripts can be run against.
pub trait Bench: Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Why a script cannot be run here; `None` when it can.
    fn refuses(&self, script: &Script) -> Option<String>;

    /// Sets a forwarder up for one script: faces, regions, configuration.
    ///
    /// # Errors
    /// It cannot be set up.
    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String>;

    /// Whether the far ends return the PIT tokens that came with Interests, where a script says
    /// nothing of tokens. Both ways are legal, and no law may depend on it.
    fn far_ends_return_tokens(&self) -> bool {
        false
    }

    /// A component that keeps the names of one run apart, where forwarders outlive scripts.
    fn apart(&self, _script: &Script) -> Option<Component> {
        None
    }
}
