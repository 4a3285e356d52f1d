//! The supported signature algorithms of tokens, verified by the library that is also used for TLS.

use belljar_definition::SignatureKind;
use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: new_verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Installs this signature check in the library for tokens, for the whole process.
pub(super) fn install_provider() {
    // An error means: the embedding program has installed a provider already.
    let _ = PROVIDER.install_default();
}

/// The name that the library for tokens has for an algorithm.
pub(super) fn library_name(kind: SignatureKind) -> Algorithm {
    match kind {
        SignatureKind::Rs256 => Algorithm::RS256,
        SignatureKind::Rs384 => Algorithm::RS384,
        SignatureKind::Rs512 => Algorithm::RS512,
        SignatureKind::Ps256 => Algorithm::PS256,
        SignatureKind::Ps384 => Algorithm::PS384,
        SignatureKind::Ps512 => Algorithm::PS512,
        SignatureKind::Es256 => Algorithm::ES256,
        SignatureKind::Es384 => Algorithm::ES384,
        SignatureKind::EdDsa => Algorithm::EdDSA,
    }
}

/// The routine that verifies a signature: for RSA keys or for curves.
enum SignatureMethod {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

struct SignatureCheck {
    algorithm: Algorithm,
    how: SignatureMethod,
    key: DecodingKey,
}

/// A verifier for one algorithm and key; an error if the key is of another family than the algorithm.
fn new_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let how = match algorithm {
        Algorithm::RS256 => SignatureMethod::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => SignatureMethod::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => SignatureMethod::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => SignatureMethod::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => SignatureMethod::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => SignatureMethod::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => SignatureMethod::Curve(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => SignatureMethod::Curve(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => SignatureMethod::Curve(&ED25519),
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    let family = match algorithm {
        Algorithm::ES256 | Algorithm::ES384 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        _ => AlgorithmFamily::Rsa,
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(SignatureCheck { algorithm: *algorithm, how, key: key.clone() }))
}

/// Refuses to sign, because this server makes no tokens.
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

impl JwtVerifier for SignatureCheck {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for SignatureCheck {
    /// Verifies a signature. Also an error: the key is not encoded as the algorithm needs it (RSA: modulus and
    /// exponent; curves: bytes).
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (&self.how, self.key.kind()) {
            (SignatureMethod::Rsa(how), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(how, message, signature)
            }
            (SignatureMethod::Curve(how), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*how, key).verify(message, signature)
            }
            (SignatureMethod::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (SignatureMethod::Curve(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                return Err(signature::Error::new());
            }
        };
        checked.map_err(|_| signature::Error::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::crypto::verify;

    /// The RSA modulus of the example in RFC 7515, A.2.
    const N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const MESSAGE: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    #[test]
    fn a_signature_is_checked_by_the_algorithm_that_its_key_is_for() {
        install_provider();
        let key = DecodingKey::from_rsa_components(N, "AQAB").unwrap();
        let good = |message: &str, algorithm| {
            verify(SIGNATURE, message.as_bytes(), &key, algorithm).unwrap_or(false)
        };
        assert!(good(MESSAGE, Algorithm::RS256));
        assert!(!good(&MESSAGE.replace("eyJp", "eyJq"), Algorithm::RS256));
        for other in [Algorithm::RS512, Algorithm::PS256, Algorithm::ES256, Algorithm::HS256] {
            assert!(!good(MESSAGE, other), "{other:?}");
        }
        // INV-372: a public key is never used as a shared secret.
        let shared = DecodingKey::from_secret(N.as_bytes());
        for algorithm in [Algorithm::HS256, Algorithm::RS256] {
            assert!(verify(SIGNATURE, MESSAGE.as_bytes(), &shared, algorithm).is_err());
        }
    }
}
