//! Machine code in a program: compressed to half its size. LZ4, because every process unpacks it at the first
//! use, in a few milliseconds.

/// Compresses machine code.
pub fn pack_code(code: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(code)
}

/// Decompresses the output of [`pack_code`]; `None` = other bytes.
pub fn unpack_code(packed: &[u8]) -> Option<Vec<u8>> {
    lz4_flex::block::decompress_size_prepended(packed).ok()
}
