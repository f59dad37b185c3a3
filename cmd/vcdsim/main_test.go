package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

func TestItRunsUntilInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, ca := gbytes.NewBuffer(), filepath.Join(t.TempDir(), "ca.pem")
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--addr", "127.0.0.1:0", "--ca-file", ca}, out, out)
	}()
	g.Eventually(out).WithTimeout(5 * time.Second).Should(gbytes.Say(`VCD_SITE=https://127.0.0.1:[1-9]`))
	g.Eventually(out).Should(gbytes.Say(`VCD_API_TOKEN=capvcd-api-token`))
	g.Expect(os.ReadFile(ca)).To(HavePrefix("-----BEGIN CERTIFICATE-----"))

	cancel()
	g.Eventually(ended).WithTimeout(5 * time.Second).Should(Receive(BeNil()))
}

func TestPrintConfig(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--print-config", "--preset", "minimal", "--ca-file", "ca.pem"}, &out, &out)).To(Succeed())
	g.Expect(out.String()).To(HavePrefix("VCD_SITE=https://127.0.0.1:8443\nVCD_CA_FILE=ca.pem\n"))
	g.Expect(out.String()).To(ContainSubstring("VCD_ORG=acme\nVCD_USERNAME=admin\nVCD_PASSWORD=password\n"))
}

func TestBadFlags(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		args          []string
	}{
		{"an unknown preset", `preset "huge" is not one of`, []string{"--preset", "huge"}},
		{"an unknown profile", `profile "warp" is not one of`, []string{"--profile", "warp"}},
		{"an unknown version", `API version "1.0" is not one of`, []string{"--version", "1.0"}},
		{"an argument", `unexpected argument "x"`, []string{"x"}},
		{"an address that cannot be", "listening on", []string{"--addr", "256.0.0.1:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			NewWithT(t).Expect(run(t.Context(), tc.args, &out, &out)).To(MatchError(ContainSubstring(tc.message)))
		})
	}
}

func TestHelp(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--help"}, &out, &out)).To(MatchError(flag.ErrHelp))
	g.Expect(out.String()).To(ContainSubstring("Examples:"))
	g.Expect(out.String()).To(ContainSubstring("-print-config"))
}
