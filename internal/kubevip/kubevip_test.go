// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

func config(mods ...func(*kubevip.Config)) kubevip.Config {
	c := kubevip.Config{Addresses: []string{"192.168.100.200"}}
	for _, mod := range mods {
		mod(&c)
	}
	return c
}

func render(t *testing.T, c kubevip.Config) map[string][]byte {
	t.Helper()
	g := NewWithT(t)
	data, err := kubevip.Render(c)
	g.Expect(err).NotTo(HaveOccurred())
	return data
}

func podOf(t *testing.T, data map[string][]byte) *corev1.Pod {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{}
	g.Expect(yaml.UnmarshalStrict(data[kubevip.KeyManifest], pod)).To(Succeed())
	return pod
}

func env(pod *corev1.Pod) map[string]string {
	values := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		values[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			values[e.Name] = e.ValueFrom.FieldRef.FieldPath
		}
	}
	return values
}

func TestTheLeaseOfTheManifestIsTheDeclaredOne(t *testing.T) {
	g := NewWithT(t)
	got := env(podOf(t, render(t, config(func(*kubevip.Config) {}))))
	g.Expect(got).To(HaveKeyWithValue("vip_leasename", kubevip.LeaseName))
	g.Expect(got).To(HaveKeyWithValue("cp_namespace", "kube-system"))
	g.Expect(got).To(HaveKeyWithValue("vip_renewdeadline", fmt.Sprint(kubevip.RenewDeadline.Seconds())))
	g.Expect(got).To(HaveKeyWithValue("vip_retryperiod", fmt.Sprint(kubevip.RetryPeriod.Seconds())))
	g.Expect(got).To(HaveKeyWithValue("vip_nodename", "spec.nodeName"), "the holder's identity")
}

func TestRenderReturnsTheKeysReferencedByTemplates(t *testing.T) {
	g := NewWithT(t)

	data := render(t, config())

	g.Expect(data).To(HaveLen(3))
	g.Expect(data).To(HaveKey("kube-vip.yaml"))
	g.Expect(data).To(HaveKey("kube-vip-prepare.sh"))
	g.Expect(data).To(HaveKey("kube-vip-cleanup.sh"))
}

func TestRenderManifest(t *testing.T) {
	g := NewWithT(t)
	file := corev1.HostPathFile

	pod := podOf(t, render(t, config()))

	g.Expect(pod.APIVersion).To(Equal("v1"))
	g.Expect(pod.Kind).To(Equal("Pod"))
	g.Expect(pod.Namespace).To(Equal("kube-system"))
	g.Expect(pod.Spec.HostNetwork).To(BeTrue())
	g.Expect(pod.Spec.HostAliases).To(BeEmpty())
	g.Expect(pod.Spec.PriorityClassName).To(Equal("system-node-critical"))
	g.Expect(pod.Spec.Containers).To(HaveLen(1))
	g.Expect(pod.Spec.Containers[0].Image).To(Equal(kubevip.DefaultImage))
	g.Expect(pod.Spec.Containers[0].Args).To(Equal([]string{"manager"}))
	g.Expect(pod.Spec.Containers[0].SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
	g.Expect(pod.Spec.Volumes).To(Equal([]corev1.Volume{
		{
			Name: "hosts",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/etc/kube-vip/hosts",
				Type: &file,
			}},
		},
		{
			Name: "kubeconfig",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/etc/kube-vip/kubeconfig",
				Type: &file,
			}},
		},
	}))
	g.Expect(env(pod)).To(Equal(map[string]string{
		"vip_arp":            "true",
		"cp_enable":          "true",
		"cp_namespace":       "kube-system",
		"vip_nodename":       "spec.nodeName",
		"address":            "192.168.100.200",
		"port":               "6443",
		"vip_subnet":         "32",
		"dns_mode":           "first",
		"vip_leaderelection": "true",
		"vip_leasename":      "plndr-cp-lock",
		"vip_leaseduration":  "15",
		"vip_renewdeadline":  "10",
		"vip_retryperiod":    "2",
		"prometheus_server":  "127.0.0.1:2112",
	}))
}

func TestRenderSetsClusterSpecificValues(t *testing.T) {
	tests := []struct {
		name   string
		config kubevip.Config
		want   map[string]string
	}{
		{name: "a custom port", config: kubevip.Config{Addresses: []string{"10.0.0.9"}, Port: 443}, want: map[string]string{"port": "443"}},
		{
			name:   "a custom interface",
			config: kubevip.Config{Addresses: []string{"10.0.0.9"}, Interface: "eth1"},
			want:   map[string]string{"vip_interface": "eth1"},
		},
		{
			name:   "IPv6 has a prefix of 128 bits",
			config: kubevip.Config{Addresses: []string{"2001:db8::9"}},
			want:   map[string]string{"address": "2001:db8::9", "vip_subnet": "128"},
		},
		{
			name:   "a DNS name resolves to one family",
			config: kubevip.Config{Addresses: []string{"api.acme.example"}},
			want:   map[string]string{"address": "api.acme.example", "vip_subnet": "32", "dns_mode": "ipv4"},
		},
		{
			name:   "two families",
			config: kubevip.Config{Addresses: []string{"10.0.0.9", "2001:db8::9"}},
			want:   map[string]string{"address": "10.0.0.9,2001:db8::9", "vip_subnet": "32,128"},
		},
		{
			name:   "two families, IPv6 first: the prefixes stay in kube-vip's order",
			config: kubevip.Config{Addresses: []string{"2001:db8::9", "10.0.0.9"}},
			want:   map[string]string{"address": "2001:db8::9,10.0.0.9", "vip_subnet": "32,128"},
		},
		{
			name:   "a DNS name with dynamic DNS",
			config: kubevip.Config{Addresses: []string{"api.acme.example"}, DynamicDNS: true},
			want:   map[string]string{"vip_ddns": "true"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got := env(podOf(t, render(t, tt.config)))

			for name, value := range tt.want {
				g.Expect(got).To(HaveKeyWithValue(name, value))
			}
		})
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	g := NewWithT(t)

	g.Expect(render(t, config())).To(Equal(render(t, config())))
}

func TestTheWholeImageIsReplaced(t *testing.T) {
	g := NewWithT(t)
	image := "registry.acme.example:5000/mirror/kube-vip:v0.9.1@sha256:" + strings.Repeat("0f", 32)

	data := render(t, config(func(c *kubevip.Config) { c.Image = image }))

	g.Expect(podOf(t, data).Spec.Containers[0].Image).To(Equal(image))
	for key, value := range data {
		g.Expect(string(value)).NotTo(ContainSubstring("ghcr.io"), key)
	}
}

// cloud-init renders files of user data with jinja, which would change text that looks like a jinja directive.
func TestOutputContainsNoTemplateDirectives(t *testing.T) {
	g := NewWithT(t)

	for key, value := range render(t, config()) {
		g.Expect(regexp.MustCompile(`\{\{|\{%|\{#`).Match(value)).To(BeFalse(), key)
	}
}

func TestDefaultImageMatchesTheGenerator(t *testing.T) {
	g := NewWithT(t)
	version := strings.TrimPrefix(kubevip.DefaultImage, "ghcr.io/kube-vip/kube-vip:")

	module, err := os.ReadFile("../../hack/kubevip/go.mod")
	g.Expect(err).NotTo(HaveOccurred())
	generated, err := os.ReadFile("generated/pod-arp.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(string(module)).To(ContainSubstring("github.com/kube-vip/kube-vip " + version + "\n"))
	g.Expect(string(generated)).To(ContainSubstring("image: " + kubevip.DefaultImage + "\n"))
}

// An edit that adds a variable unknown to the generator would be a silent no-op on the node.
func TestGeneratedManifestsHaveEveryFixedSetting(t *testing.T) {
	always := []string{"address", "port", "vip_subnet", "dns_mode"}
	for name, known := range map[string][]string{
		"pod-arp": always,
		"pod-bgp": append([]string{"vip_interface", "bgp_as", "bgp_peers"}, always...),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			generated, err := os.ReadFile("generated/" + name + ".yaml")
			g.Expect(err).NotTo(HaveOccurred())
			pod := &corev1.Pod{}
			g.Expect(yaml.UnmarshalStrict(generated, pod)).To(Succeed())

			for _, name := range known {
				g.Expect(env(pod)).To(HaveKey(name))
			}
		})
	}
}

func TestRenderRejectsInvalidInput(t *testing.T) {
	tests := []struct {
		name string
		mod  func(*kubevip.Config)
		want string
	}{
		{name: "no address", mod: func(c *kubevip.Config) { c.Addresses = []string{""} }, want: `address ""`},
		{
			name: "an invalid address",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"192.168.100.300"} },
			want: "neither an IP address nor a DNS name",
		},
		{
			name: "a short address",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"10.0.1"} },
			want: "neither an IP address nor a DNS name",
		},
		{name: "an address with a port", mod: func(c *kubevip.Config) { c.Addresses = []string{"10.0.0.1:6443"} }, want: "neither"},
		{name: "a prefix", mod: func(c *kubevip.Config) { c.Addresses = []string{"10.0.0.1/24"} }, want: "neither"},
		{name: "two addresses in one field", mod: func(c *kubevip.Config) { c.Addresses = []string{"10.0.0.1,2001:db8::1"} }, want: "neither"},
		{name: "nothing", mod: func(c *kubevip.Config) { c.Addresses = nil }, want: "0 addresses"},
		{
			name: "two addresses of a family",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"10.0.0.1", "10.0.0.2"} },
			want: "of the same family",
		},
		{
			name: "a name in addition to an address",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"api.example", "10.0.0.2"} },
			want: "cannot be combined",
		},
		{
			name: "three addresses",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"10.0.0.1", "fd00::1", "10.0.0.2"} },
			want: "3 addresses",
		},
		{
			name: "the unspecified address",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"0.0.0.0"} },
			want: "cannot be announced",
		},
		{name: "a loopback address", mod: func(c *kubevip.Config) { c.Addresses = []string{"127.0.0.1"} }, want: "cannot be announced"},
		{
			name: "a multicast address",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"224.0.0.18"} },
			want: "cannot be announced",
		},
		{name: "a link-local address", mod: func(c *kubevip.Config) { c.Addresses = []string{"fe80::1"} }, want: "cannot be announced"},
		{
			name: "an address with a zone",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"2001:db8::1%eth0"} },
			want: "cannot be announced",
		},
		{
			name: "a mapped address",
			mod:  func(c *kubevip.Config) { c.Addresses = []string{"::ffff:10.0.0.1"} },
			want: "cannot be announced",
		},
		{name: "a DNS name in upper case", mod: func(c *kubevip.Config) { c.Addresses = []string{"API.example"} }, want: "lower case"},
		{name: "a DNS name with an empty label", mod: func(c *kubevip.Config) { c.Addresses = []string{"api..example"} }, want: "neither"},
		{name: "a DNS name that jinja would render", mod: func(c *kubevip.Config) { c.Addresses = []string{"{{x}}"} }, want: "neither"},
		{name: "a negative port", mod: func(c *kubevip.Config) { c.Port = -1 }, want: "port -1"},
		{name: "a port above the maximum", mod: func(c *kubevip.Config) { c.Port = 65536 }, want: "port 65536"},
		{name: "an interface with a space", mod: func(c *kubevip.Config) { c.Interface = "eth 0" }, want: "interface name"},
		{
			name: "an interface with a long name",
			mod:  func(c *kubevip.Config) { c.Interface = "abcdefghijklmnop" },
			want: "interface name",
		},
		{name: "an image with a line break", mod: func(c *kubevip.Config) { c.Image = "a\nb" }, want: "valid image name"},
		{name: "dynamic DNS for an address", mod: func(c *kubevip.Config) { c.DynamicDNS = true }, want: "requires a DNS name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			data, err := kubevip.Render(config(tt.mod))

			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(data).To(BeNil())
		})
	}
}

func FuzzValidateAddress(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", "api.example", "::1", "a\nb", "{{ x }}", "1.2.3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if kubevip.ValidateAddress(address) != nil {
			return
		}
		g := NewWithT(t)

		data, err := kubevip.Render(kubevip.Config{Addresses: []string{address}})

		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(env(podOf(t, data))).To(HaveKeyWithValue("address", address))
	})
}
