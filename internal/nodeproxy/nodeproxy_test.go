// SPDX-License-Identifier: Apache-2.0

package nodeproxy

import (
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http/httpproxy"
	"sigs.k8s.io/cluster-api/util/secret"
)

func settings() Settings {
	return Settings{
		HTTP:  "http://user:p%40ss@proxy.example.com:3128",
		HTTPS: "http://proxy.example.com:3128",
		Direct: Cluster{
			Services: []string{"100.64.0.0/13", "fd00:1::/112"},
			Pods:     []string{"100.96.0.0/11"},
			Endpoint: "192.168.100.200",
			Site:     "https://vcd.example.com:8443",
			Networks: []netip.Prefix{netip.MustParsePrefix("192.168.100.1/24"), netip.MustParsePrefix("10.1.0.0/16")},
			More:     []string{"mirror.example.com", ".corp.example.com", "10.1.0.0/16", "localhost"},
		}.Direct(),
	}
}

func TestDirectHasAFixedOrderWithoutDuplicates(t *testing.T) {
	NewWithT(t).Expect(settings().Direct).To(Equal([]string{
		"localhost", "127.0.0.0/8", "::1", ".svc", ".cluster.local", "100.64.0.0/13", "fd00:1::/112", "100.96.0.0/11",
		"192.168.100.200", "10.1.0.0/16", "192.168.100.0/24", "vcd.example.com", "mirror.example.com",
		".corp.example.com",
	}))
}

// TestClusterInternalAddressesBypassTheProxy uses the same implementation as kubelet, containerd and most Go programs.
func TestClusterInternalAddressesBypassTheProxy(t *testing.T) {
	s := settings()
	proxyFor := (&httpproxy.Config{
		HTTPProxy:  s.HTTP,
		HTTPSProxy: s.HTTPS,
		NoProxy:    strings.Join(s.Direct, ","),
	}).ProxyFunc()
	for address, direct := range map[string]bool{
		"https://192.168.100.200:6443":              true,
		"https://192.168.100.17:10250":              true,
		"https://10.1.3.4:10250":                    true,
		"https://100.64.0.1":                        true,
		"http://[fd00:1::a]":                        true,
		"http://100.96.3.4:8080":                    true,
		"http://shop.default.svc":                   true,
		"http://shop.default.svc.cluster.local":     true,
		"https://vcd.example.com:8443/api/versions": true,
		"https://git.corp.example.com":              true,
		"https://mirror.example.com":                true,
		"http://localhost:8080":                     true,
		"http://[::1]:8080":                         true,
		"https://registry.k8s.io":                   false,
		"http://deb.debian.org":                     false,
		"https://192.168.101.1":                     false,
	} {
		g := NewWithT(t)
		to, err := url.Parse(address)
		g.Expect(err).NotTo(HaveOccurred())
		proxy, err := proxyFor(to)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(proxy == nil).To(Equal(direct), address)
	}
}

func TestServicesBypassTheProxyWithoutAClusterNetwork(t *testing.T) {
	g := NewWithT(t)

	g.Expect(Cluster{Pods: []string{"10.244.0.0/16"}}.Direct()).To(ContainElement("10.96.0.0/12"))
	g.Expect(Cluster{Services: []string{"172.30.0.0/16"}}.Direct()).NotTo(ContainElement("10.96.0.0/12"))
}

// TestTheSecretIsNotAClusterAPISecret compares with the Secrets of other clusters: <cluster>-http-proxy would be the CA
// of the front proxy of a cluster named <cluster>-http.
func TestTheSecretIsNotAClusterAPISecret(t *testing.T) {
	g := NewWithT(t)
	for _, purpose := range []secret.Purpose{
		secret.Kubeconfig,
		secret.ClusterCA,
		secret.EtcdCA,
		secret.ServiceAccount,
		secret.FrontProxyCA,
		secret.APIServerEtcdClient,
	} {
		g.Expect(SecretSuffix).NotTo(HaveSuffix("-" + string(purpose)))
	}
}

func TestFilesUseTheSyntaxOfSystemdAndAPT(t *testing.T) {
	g := NewWithT(t)
	files := settings().Files()

	g.Expect(string(files[KeySystemd])).To(And(HavePrefix("# "), ContainSubstring("\n[Manager]\nDefaultEnvironment="),
		ContainSubstring(`"http_proxy=http://user:p%%40ss@proxy.example.com:3128"`), ContainSubstring(`"NO_PROXY=localhost,`)))
	g.Expect(string(files[KeyContainerd])).To(And(ContainSubstring("\n[Service]\nEnvironment="),
		ContainSubstring(`"HTTPS_PROXY=http://proxy.example.com:3128"`)))
	apt := string(files[KeyAPT])
	g.Expect(apt).To(And(
		ContainSubstring(`Acquire::http::Proxy "http://user:p%40ss@proxy.example.com:3128";`),
		ContainSubstring(`Acquire::https::Proxy::mirror.example.com "DIRECT";`),
		Not(ContainSubstring(".corp")), Not(ContainSubstring("/11")), Not(ContainSubstring("fd00"))))
	if _, err := exec.LookPath("apt-config"); err != nil {
		t.Skip("apt-config is not installed")
	}
	path := filepath.Join(t.TempDir(), "apt.conf")
	g.Expect(os.WriteFile(path, files[KeyAPT], 0o600)).To(Succeed())
	command := exec.CommandContext(t.Context(), "apt-config", "shell", "PROXY", "Acquire::http::Proxy", "DIRECT",
		"Acquire::https::Proxy::mirror.example.com")
	command.Env = append(os.Environ(), "APT_CONFIG="+path)
	out, err := command.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(string(out)).To(And(ContainSubstring("PROXY='http://user:p%40ss@proxy.example.com:3128'"),
		ContainSubstring("DIRECT='DIRECT'")))
}

func TestFilesAreEmptyWithoutAProxy(t *testing.T) {
	g := NewWithT(t)
	files := Settings{Direct: []string{"localhost"}}.Files()

	g.Expect(files).To(HaveLen(9))
	for _, key := range []string{KeyAPT, KeySystemd, KeyContainerd, KeyProfile} {
		g.Expect(string(files[key])).NotTo(ContainSubstring("roxy "), key)
		g.Expect(string(files[key])).NotTo(ContainSubstring("="), key)
	}
	g.Expect(string(files[KeyKubeadm])).To(ContainSubstring("UnsetEnvironment="))
}

// TestNoVariableReachesKubeadm compares the drop-in of kubeadm's service with all variables that the other files set.
// systemd removes these names last, regardless of the file that set them.
func TestNoVariableReachesKubeadm(t *testing.T) {
	g := NewWithT(t)
	files := settings().Files()
	_, list, found := strings.Cut(string(files[KeyKubeadm]), "UnsetEnvironment=")
	g.Expect(found).To(BeTrue())
	unset := strings.Fields(list)

	for _, v := range settings().variables() {
		g.Expect(unset).To(ContainElement(v.name))
	}
}

func TestSettingsOfAnotherProxyAreIgnored(t *testing.T) {
	g := NewWithT(t)
	s := settings()
	s.Version = Version(s.HTTP, s.HTTPS, []string{"a"})
	files := s.Files()

	direct, current := DirectOf(files, s.Version)
	g.Expect(current).To(BeTrue())
	g.Expect(direct).To(Equal(s.Direct))
	g.Expect(files).To(HaveKeyWithValue("containerd-"+s.Version+".conf", files[KeyContainerd]))
	g.Expect(files).To(HaveKeyWithValue("profile-"+s.Version+".sh", files[KeyProfile]))
	g.Expect(files).To(HaveKeyWithValue("prepare-"+s.Version+".sh", files[KeyPrepare]))
	_, current = DirectOf(files, Version(s.HTTP, s.HTTPS, []string{"b"}))
	g.Expect(current).To(BeFalse())
	_, current = DirectOf(nil, s.Version)
	g.Expect(current).To(BeFalse())
}

func TestNetworksAreReadBackWithoutUserEntries(t *testing.T) {
	g := NewWithT(t)
	network := netip.MustParsePrefix("192.168.4.0/24")
	files := Settings{Direct: Cluster{
		Services: []string{"10.96.0.0/12"},
		Endpoint: "192.168.4.10",
		Networks: []netip.Prefix{network},
		More:     []string{"172.16.0.0/12", ".corp.example.com"},
	}.Direct()}.Files()

	got := NetworksOf(files, []string{"172.16.0.0/12", ".corp.example.com"})

	g.Expect(got).To(ConsistOf(network, netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("127.0.0.0/8")))
	g.Expect(NetworksOf(nil, nil)).To(BeEmpty())
}
