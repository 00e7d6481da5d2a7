//! Fetches several objects side by side over one connection:
//! `cargo run --example consumer_async -- /example/a /example/b`.

use onym_client::aio::Client;
use onym_client::{ClientOptions, FetchOptions};
use onym_wire::name::Name;
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let names = std::env::args().skip(1).map(|n| n.parse()).collect::<Result<Vec<Name>, _>>()?;
    let client = Client::open(ClientOptions::default())?;
    let mut tasks = Vec::new();
    for name in names {
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            let mut fetch = client.fetch(name.clone(), FetchOptions::default()).await?;
            let mut octets = 0;
            // Pieces come in order; a reader that is slow slows its fetch only.
            while let Some(piece) = fetch.next().await {
                octets += piece.len();
            }
            fetch.end().await?;
            Ok::<_, onym_client::Error>((name, octets))
        }));
    }
    for task in tasks {
        let (name, octets) = task.await??;
        println!("{name}: {octets} octets");
    }
    Ok(())
}
