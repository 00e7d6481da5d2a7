//! Answers each Interest under a prefix with what the application computes for it:
//! `cargo run --example producer_async -- /example/square`, then `onym peek /example/square/12`.

use onym_client::aio::Client;
use onym_client::{ClientOptions, RouteOptions};
use onym_crypto::signer::write_digest_data;
use onym_frame::Buf;
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use std::error::Error;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let prefix: Name = std::env::args().nth(1).as_deref().unwrap_or("/example/square").parse()?;
    let options = ClientOptions { reconnect_for: Duration::MAX, ..ClientOptions::default() };
    let client = Client::open(options)?;
    let mut interests = client.interests(prefix.clone()).await?;
    client.register(prefix.clone(), RouteOptions::default()).await?;
    println!("ready: {prefix}");
    while let Some(incoming) = interests.next().await {
        let name = incoming.interest().name.to_name();
        let number =
            name.as_ref().last().and_then(|c| std::str::from_utf8(c.value).ok()?.parse().ok());
        let Some(number) = number else { continue };
        let number: u64 = number;
        let content = number.wrapping_mul(number).to_string();
        let data = DataBuilder {
            freshness_ms: 1000,
            ..DataBuilder::new(name.as_ref(), content.as_bytes())
        };
        let mut wire = Vec::new();
        write_digest_data(&data, &mut wire);
        client.reply(incoming, Buf::copy_from(&wire)).await?;
    }
    Ok(())
}
