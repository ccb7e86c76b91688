//! What stands in the place of TLS in a build without the feature `tls`: types without values.

use super::{Received, Socket};
use std::io;

/// There is none: a URL that needs TLS is refused.
#[derive(Clone, Debug)]
pub(crate) enum TlsTarget {}

/// There is none.
#[derive(Debug)]
pub(super) enum TlsSession {}

impl TlsSession {
    pub(super) fn new(target: &TlsTarget) -> io::Result<Self> {
        match *target {}
    }

    pub(super) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(super) fn has_decrypted(&self) -> bool {
        match *self {}
    }

    pub(super) fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub(super) fn receive(&mut self, _: &mut Socket) -> io::Result<bool> {
        match *self {}
    }

    pub(super) fn read(&mut self, _: &mut Socket, _: &mut [u8]) -> io::Result<Received> {
        match *self {}
    }

    pub(super) fn write(&mut self, _: &mut Socket, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn flush(&mut self, _: &mut Socket) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn finish(&mut self, _: &mut Socket) {
        match *self {}
    }
}
