//! Machine code as a program carries it: compressed, so that it takes half of the room. LZ4, because
//! it is unpacked at the first use in every process, in a few milliseconds.

/// Compresses machine code.
pub fn pack(code: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(code)
}

/// The bytes that [`pack`] made smaller; `None` = these are not its bytes.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    lz4_flex::block::decompress_size_prepended(packed).ok()
}
