//! Serves a text under a name until stopped: `cargo run --example producer -- /example/hello`.

use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_client::serve::{Object, ServeOptions};
use onym_wire::name::Name;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let name: Name = std::env::args().nth(1).as_deref().unwrap_or("/example/hello").parse()?;
    let options = ClientOptions { reconnect_for: Duration::MAX, ..ClientOptions::default() };
    let mut client = Client::open(options)?;
    // Segments and metadata (RDR) of version 1, signed with a digest.
    let object = Object::new(name.clone(), b"hello from onym".to_vec(), ServeOptions::new(1))?;
    // Registered now, again every few minutes, and again when the node was gone.
    client.serve(name.clone(), object)?;
    println!("ready: {name}");
    client.run(Duration::from_secs(1), &mut || false, &mut |happened| eprintln!("{happened:?}"))?;
    Ok(())
}
