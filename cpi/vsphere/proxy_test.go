// SPDX-License-Identifier: Apache-2.0

package vsphere_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
)

// behindProxy is the environment variable with the site that TestAProxyFailureIsNotAVCenterFailure
// calls in its child process. It is not set in the parent process.
const behindProxy = "BEHIND_PROXY"

// TestAProxyFailureIsNotAVCenterFailure runs itself in a child process, because each process reads the proxy variables
// only once.
func TestAProxyFailureIsNotAVCenterFailure(t *testing.T) {
	if os.Getenv(behindProxy) != "" {
		m := vsphere.NewMachines(vsphere.MachineOptions{
			VCenters: []vsphere.VCenter{{Name: "vc", Host: "vc.proxied.example", Credentials: password("user", "pass")}},
			Clock:    clocktesting.NewFakeClock(time.Now()),
		})
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		_, err := m.Snapshot(t.Context(), 0)
		t.Logf("<%v>", err)
		return
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(proxy.Close)
	for address, reason := range map[string]string{
		proxy.Listener.Addr().String(): " rejects the user name and password (HTTP 407)",
		"127.0.0.1:1":                  " cannot be used, so the request did not reach the site: connection refused",
	} {
		g := NewWithT(t)
		again := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), behindProxy+"=true", "HTTPS_PROXY=http://canary:canary@"+address, "NO_PROXY=")

		out, err := again.CombinedOutput()

		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring("vc.proxied.example:443/sdk\": proxy " + address + reason))
		g.Expect(string(out)).To(ContainSubstring("in HTTPS_PROXY"), "the remedy")
		g.Expect(string(out)).NotTo(ContainSubstring("canary"))
	}
}
