// SPDX-License-Identifier: Apache-2.0

package guestinfo_test

import (
	"bufio"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

const networkd = "/lib/systemd/systemd-networkd"

// networkdScript starts systemd-networkd with the units of a folder, in separate namespaces.
const networkdScript = `mount -t tmpfs run /run
mkdir -p /run/systemd/network
cp "$1"/*.network /run/systemd/network/
exec ` + networkd

// complaints returns the log messages of systemd-networkd about units.
func complaints(t *testing.T, units map[string]string) []string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	for path, text := range units {
		g.Expect(os.WriteFile(filepath.Join(folder, filepath.Base(path)), []byte(text), 0o644)).To(Succeed())
	}
	ctx, cancel := context.WithTimeout(t.Context(), testtime.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--net", "--mount", "sh", "-ec", networkdScript, "sh", folder)
	cmd.Env = append(os.Environ(), "SYSTEMD_LOG_LEVEL=debug", "SYSTEMD_LOG_TARGET=console")
	stderr, err := cmd.StderrPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Start()).To(Succeed())
	var found []string
	isRead := false
	for lines := bufio.NewScanner(stderr); !isRead && lines.Scan(); {
		line := lines.Text()
		isRead = strings.Contains(line, "Enumeration completed")
		if strings.HasPrefix(line, "/run/systemd/network/") {
			found = append(found, line)
		}
	}
	cancel()
	_ = cmd.Wait() // It is killed.
	g.Expect(isRead).To(BeTrue(), "systemd-networkd ended before it had read its units")
	return found
}

func TestSystemdNetworkdSupportsEachSetting(t *testing.T) {
	if _, err := os.Stat(networkd); err != nil || os.Geteuid() != 0 {
		t.Skip("requires root and the distribution's systemd-networkd")
	}
	if err := exec.Command("unshare", "--net", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/run").Run(); err != nil {
		t.Skipf("namespaces are not available: %v", err)
	}
	g := NewWithT(t)
	yes := true
	no := false
	in := input(withIgnition(ignitionConfig), func(in *guestinfo.Input) {
		in.NICs[1].Metric = 50
		in.NICs[1].Routes = []guestinfo.Route{
			{To: netip.MustParsePrefix("10.0.0.0/8"), Via: netip.MustParseAddr("10.20.0.1"), Metric: 7},
		}
		in.NICs[2].DHCP = guestinfo.DHCP{
			UseDNS:     &no,
			UseDomains: "route",
			UseMTU:     &yes,
			UseNTP:     &no,
			UseRoutes:  &yes,
			Metric:     7,

			UseHostname:  &no,
			SendHostname: &yes,
			Hostname:     "node.example.com",
		}
	})
	v6 := in.NICs[2]
	v6.MAC = "00:50:56:ab:cd:05"
	v6.Name = "eth4"
	v6.IPv6Only = true
	in.NICs = append(in.NICs, v6)
	units := map[string]string{}
	for path, text := range render(t, in).files(t) {
		if strings.HasSuffix(path, ".network") {
			units[path] = text
		}
	}
	g.Expect(units).To(HaveLen(len(in.NICs)))

	g.Expect(complaints(t, units)).To(BeEmpty())
	units["wrong.network"] = "[Match]\nName=*\n[Network]\nAddr=10.0.0.1/24\n"
	g.Expect(complaints(t, units)).To(ConsistOf(ContainSubstring("Unknown key 'Addr'")))
}
