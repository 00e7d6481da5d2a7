#![doc = include_str!("../README.md")]

pub mod alloc_count;
pub mod clock;
pub mod epoll;
pub mod memory;
pub mod mmsg;
pub mod netdev;
pub mod nnet;
pub mod nnet_numbers;
pub mod origin;
pub mod packet;
pub mod peer;
pub mod port;
pub mod shm;
pub mod socket;
pub mod thread;
pub mod words;
