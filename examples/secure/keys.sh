#!/usr/bin/env bash
# A key that signs tokens, a token of the role admin, and a certificate for localhost. All are secrets but server.pem.
set -euo pipefail
umask 077
openssl rand -out secret.key 32
python3 -c "import jwt; print(jwt.encode({'sub': 'admin'}, open('secret.key', 'rb').read()), end='')" >admin.token
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout server.key -out server.pem
