//! Randomness from the operating system.

use zeroize::Zeroizing;

/// `N` bytes nobody can guess.
pub(crate) fn secret_bytes<const N: usize>() -> std::io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(bytes.as_mut_slice()).map_err(std::io::Error::other)?;
    Ok(bytes)
}
