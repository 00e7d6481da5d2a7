//! A chat without a server: `cargo run --example chat_async -- /example/chat /alice`, and the same
//! with `/bob` elsewhere. Nothing is proven about who speaks: see `Believe`.

use onym_client::ClientOptions;
use onym_client::aio::{Believe, Client};
use onym_crypto::{Signer, edge};
use onym_sync::alo::{AloConfig, AloEvent, Snapshots};
use onym_wire::Name;
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let group: Name = args.next().as_deref().unwrap_or("/example/chat").parse()?;
    let node: Name = args.next().as_deref().unwrap_or("/alice").parse()?;
    let boot = edge::unix_now_ms() / 1000;
    let last = Snapshots::None { last: 10 };
    let config = AloConfig::new(group, node, boot, Signer::digest(), last);
    let client = Client::open(ClientOptions::default())?;
    let mut chat = client.join(config, Believe::Anybody).await?;
    chat.subscribe(Name::new()).await?;
    let (lines, mut typed) = tokio::sync::mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    loop {
        tokio::select! {
            line = typed.recv() => match line {
                Some(line) => drop(chat.publish(line.into_bytes(), Vec::new()).await?),
                None => return Ok(()),
            },
            event = chat.next() => match event {
                Some(AloEvent::Publication { node, content, .. }) => {
                    println!("{node}: {}", String::from_utf8_lossy(&content).escape_debug());
                }
                Some(_) => {}
                None => return Ok(()),
            },
        }
    }
}
