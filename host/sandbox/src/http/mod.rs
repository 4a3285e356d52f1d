//! The network gate and the secrets that it joins to requests.

/// How the network gate behaves.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {}

/// The values of secrets, each bound to a host, a header and a prefix. Never shown.
#[derive(Debug, Clone, Default)]
pub struct SecretStore {}
