use super::*;

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

/// RFC 2202 section 3 and RFC 4231 section 4.3, test case 2.
const VECTORS: [&str; 4] = [
    "sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    "sha384=af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
    "sha512=164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
];

#[test]
fn every_method_of_the_recommendation_is_verified_and_sha256_signs() {
    let (secret, body) = (secret("Jefe"), b"what do ya want for nothing?");
    for header in VECTORS {
        assert_eq!(secret.verify(header, body), Ok(()));
        assert_eq!(secret.verify(&header.to_uppercase(), body), Ok(()));
    }
    assert_eq!(secret.sign(body), VECTORS[1]);
}

#[test]
fn what_is_wrong_is_not_believed() {
    let right = secret("Jefe").sign(b"body");
    let wrong = SignatureError::Wrong;
    assert_eq!(secret("Jefe").verify(&right, b"Body"), Err(wrong.clone()));
    assert_eq!(secret("jefe").verify(&right, b"body"), Err(wrong.clone()));
    let cut = right.strip_suffix(|_: char| true).unwrap();
    let cut = cut.strip_suffix(|_: char| true).unwrap();
    assert_eq!(secret("Jefe").verify(cut, b"body"), Err(wrong.clone()));
    assert_eq!(secret("Jefe").verify("sha256=", b"body"), Err(wrong));
    for (header, error) in [
        ("", SignatureError::Form),
        ("sha256", SignatureError::Form),
        ("sha256=xyz", SignatureError::Form),
        ("sha256=abc", SignatureError::Form),
        ("md5=00", SignatureError::Method),
        (&format!("sha256={}", "0".repeat(300)), SignatureError::Form),
    ] {
        assert_eq!(secret("Jefe").verify(header, b"body"), Err(error), "{header}");
    }
}

#[test]
fn a_secret_is_bounded_and_never_shown() {
    assert_eq!(Secret::new(""), Err(SignatureError::Secret { found: 0 }));
    assert_eq!(Secret::new(&"é".repeat(100)), Err(SignatureError::Secret { found: 200 }));
    assert!(Secret::new(&"s".repeat(199)).is_ok());
    assert_eq!(format!("{:?}", secret("hush")), "Secret(…)");
}
