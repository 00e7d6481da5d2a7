#![doc = include_str!("../README.md")]

mod address;
mod body;
mod conditions;
pub mod gateway;
mod kinds;
mod listing;
mod lookup;
pub mod origin;
