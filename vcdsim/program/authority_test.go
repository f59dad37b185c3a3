// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// get requests the versions of the program with the given output, trusting the certificates in a file.
func get(g *WithT, out *gbytes.Buffer, caFile string) error {
	ca, err := os.ReadFile(caFile)
	g.Expect(err).NotTo(HaveOccurred())
	trusted := x509.NewCertPool()
	g.Expect(trusted.AppendCertsFromPEM(ca)).To(BeTrue())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	answer, err := client.Get(address(out) + "/api/versions")
	if err == nil {
		_ = answer.Body.Close()
	}
	return err
}

// address returns the address in the program's output.
func address(out *gbytes.Buffer) string {
	return string(regexp.MustCompile(`VCD_SITE=(\S+)`).FindSubmatch(out.Contents())[1])
}

func TestTheCertificateAuthoritySurvivesARestart(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "vcdsim", "ca.pem")
	var first []byte
	for range 2 {
		runFor(t, []string{"--ca-file", ca}, func(g *WithT, out *gbytes.Buffer) {
			now, err := os.ReadFile(ca)
			g.Expect(err).NotTo(HaveOccurred())
			if first == nil {
				first = now
			}
			g.Expect(now).To(Equal(first))
			g.Expect(get(g, out, ca)).To(Succeed())
		})
	}
	info, err := os.Stat(ca + ".key")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))

	g.Expect(os.Remove(ca + ".key")).To(Succeed())
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--ca-file", ca}, &out, &out)).To(MatchError(ContainSubstring("without its key")))
	g.Expect(os.ReadFile(ca)).To(Equal(first), "a file of another program is kept")
	g.Expect(os.WriteFile(ca+".key", first, 0o600)).To(Succeed())
	g.Expect(run(t.Context(), []string{"--ca-file", ca}, &out, &out)).To(MatchError(ContainSubstring("to create a new one")))
}

func TestACertificateIsServedUnchanged(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	cert := filepath.Join(dir, "tls.crt")
	key := filepath.Join(dir, "tls.key")
	chain, private := vcdsimtest.SelfSigned(t)
	g.Expect(os.WriteFile(cert, chain, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(key, private, 0o600)).To(Succeed())

	runFor(t, []string{"--tls-cert", cert, "--tls-key", key}, func(g *WithT, out *gbytes.Buffer) {
		g.Expect(string(out.Contents())).To(ContainSubstring("VCD_CA_FILE=" + cert))
		block, _ := pem.Decode(chain)
		g.Expect(served(g, address(out)).Raw).To(Equal(block.Bytes))
	})
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--tls-cert", cert, "--tls-key", key, "--ca-file", dir + "/none"}, &out,
		&out)).To(MatchError(ContainSubstring("reading the certificate authority of --ca-file")))
}

// served returns the certificate that a site presents.
func served(g *WithT, site string) *x509.Certificate {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(site, "https://"),
		&tls.Config{InsecureSkipVerify: true})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}
