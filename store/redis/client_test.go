package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// TestAbruptClose: closing does not wait for a server that no longer reads.
// net.Pipe has no buffer, so the close_notify of tls.Conn would block for five
// seconds.
func TestAbruptClose(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	defer far.Close()
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	shook := make(chan error, 1)
	go func() { shook <- server.Handshake() }()
	client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shook; err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := (abruptConn{client, near}).Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 4*time.Second { // crypto/tls waits five for close_notify
		t.Errorf("Close took %v", d)
	}
}
