//go:build unix

package storetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Sentinel is a master with two replicas, watched by one Sentinel.
type Sentinel struct {
	Servers []*Server // the first one is the master at the beginning
	Watcher *Server
	Name    string // of the master in the configuration of Sentinel and clients
}

// Master returns the current master; nil while there is none.
func (s *Sentinel) Master() *Server {
	for _, srv := range s.Servers {
		if info, err := srv.Command("INFO", "replication"); err == nil && strings.Contains(info, "role:master") {
			return srv
		}
	}
	return nil
}

// StartSentinel starts a master, two replicas and a Sentinel. About a second after
// the master is killed, a replica is promoted.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	master := StartRedis(t)
	servers := []*Server{master}
	for range 2 {
		servers = append(servers, StartRedis(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.port), "--repl-diskless-sync-delay", "0"))
	}
	for _, replica := range servers[1:] {
		Eventually(t, "the replica follows", 30*time.Second, func() bool {
			info, err := replica.Command("INFO", "replication")
			return err == nil && strings.Contains(info, "master_link_status:up")
		})
	}
	w := newServer(t)
	w.sentinel = true
	file := filepath.Join(w.dir, "sentinel.conf")
	conf := fmt.Sprintf("port %d\nsentinel monitor main 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n", w.port, master.port)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	w.args = []string{file}
	w.Restart()
	Eventually(t, "Sentinel knows the replicas", 30*time.Second, func() bool {
		list, err := w.Command("SENTINEL", "REPLICAS", "main")
		return err == nil && list == "*2"
	})
	return &Sentinel{Servers: servers, Watcher: w, Name: "main"}
}

// StartCluster starts a cluster of three masters.
func StartCluster(t testing.TB) []*Server {
	t.Helper()
	var nodes []*Server
	for range 3 {
		bus := strconv.Itoa(freePort(t))
		nodes = append(nodes, StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus,
			"--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf"))
	}
	const slots = 16384
	for i, n := range nodes {
		n.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		n.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(nodes[0].port), nodes[0].option("--cluster-port"))
	}
	Eventually(t, "the cluster is whole", 60*time.Second, func() bool {
		for _, n := range nodes {
			info, err := n.Command("CLUSTER", "INFO")
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return nodes
}

// option returns the value of an option that the server was started with.
func (s *Server) option(name string) string {
	for i, a := range s.args {
		if a == name {
			return s.args[i+1]
		}
	}
	return ""
}

// Secure is a server that requires TLS and client certificates and has one user,
// with access to keys that start with "rebound:".
type Secure struct {
	*Server
	CAFile, CertFile, KeyFile string
	Username, Password        string
}

// URL returns the rediss:// URL of the server, without the user.
func (s *Secure) URL() string { return "rediss://" + s.Addr() + "/0" }

// StartSecure starts a server with TLS and a user.
func StartSecure(t testing.TB) *Secure {
	t.Helper()
	s := &Secure{Server: newServer(t), Username: "gate", Password: "s3cret/with?odd#parts"}
	s.CAFile, s.CertFile, s.KeyFile = certificates(t, s.dir)
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(s.CAFile)
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatal("no certificate authority", err)
	}
	s.secure = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "127.0.0.1"}
	s.login = []string{"AUTH", s.Username, s.Password}
	users := filepath.Join(s.dir, "users.acl")
	rules := "user default off\nuser " + s.Username + " on >" + s.Password +
		" ~rebound:* +getrange +set +unlink +hdel +eval +evalsha +hget +pttl +pexpire +llen +lrange" +
		" +lset +rpush +ltrim +hlen +hgetall +hset +del +ping\n"
	if err := os.WriteFile(users, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = []string{
		"--port", "0", "--tls-port", strconv.Itoa(s.port), "--aclfile", users,
		"--tls-ca-cert-file", s.CAFile, "--tls-cert-file", s.CertFile, "--tls-key-file", s.KeyFile,
	}
	s.Restart()
	return s
}

// certificates creates an authority, and one certificate for server and clients.
func certificates(t testing.TB, dir string) (ca, cert, key string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, der []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		check(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			BasicConstraintsValid: true,
		}
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	authority := template(1, "test authority")
	authority.IsCA, authority.KeyUsage = true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	check(err)
	ca = write("ca.pem", "CERTIFICATE", der)

	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	leaf := template(2, "test server")
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err = x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, authorityKey)
	check(err)
	cert = write("cert.pem", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(leafKey)
	check(err)
	key = write("key.pem", "EC PRIVATE KEY", der)
	return ca, cert, key
}

// Replicate starts a replica of a master of a cluster. It is promoted some seconds after the master is killed.
func Replicate(t testing.TB, nodes []*Server, master *Server) *Server {
	t.Helper()
	r := StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(freePort(t)),
		"--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf", "--repl-diskless-sync-delay", "0")
	r.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(master.port), master.option("--cluster-port"))
	id := master.Do("CLUSTER", "MYID")
	Eventually(t, "the replica knows its master", 60*time.Second, func() bool {
		_, err := r.Command("CLUSTER", "REPLICATE", id)
		return err == nil
	})
	Eventually(t, "the replica follows", 60*time.Second, func() bool {
		info, err := r.Command("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	for _, n := range nodes {
		Eventually(t, "all know the replica", 60*time.Second, func() bool {
			info, err := n.Command("CLUSTER", "INFO")
			return err == nil && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(len(nodes)+1))
		})
	}
	return r
}
