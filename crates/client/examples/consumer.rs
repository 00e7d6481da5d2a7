//! Fetches a segmented object and says how it went: `cargo run --example consumer -- /example/hello`.

use onym_client::blocking::{Client, Watch};
use onym_client::{ClientOptions, FetchOptions};
use onym_wire::name::Name;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let name: Name = std::env::args().nth(1).as_deref().unwrap_or("/example/hello").parse()?;
    // The node that NDN_CLIENT_TRANSPORT names, else the one at the usual places.
    let mut client = Client::open(ClientOptions::default())?;
    let mut content = Vec::new();
    let progress = client.fetch(name, FetchOptions::default(), &mut content, &mut |watch| {
        // The node may go away and come back; the fetch goes on by itself.
        if let Watch::Notice(notice) = watch {
            eprintln!("{notice:?}");
        }
    })?;
    println!("{}", String::from_utf8_lossy(&content));
    println!("{} octets in {} segments", progress.bytes, progress.segments);
    Ok(())
}
