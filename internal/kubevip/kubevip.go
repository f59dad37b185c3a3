// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"embed"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Keys of the Secret's data.
const (
	KeyManifest = "kube-vip.yaml"
	KeyPrepare  = "kube-vip-prepare.sh"
	KeyCleanup  = "kube-vip-cleanup.sh"
)

const (
	// DefaultImage is the image of the release whose generator created the manifests.
	DefaultImage = "ghcr.io/kube-vip/kube-vip:v0.9.1"

	// DefaultPort is kubeadm's default port of an API server.
	DefaultPort = 6443
)

// The lease of the node that announces the endpoint, in the namespace kube-system. The generated manifests contain the
// same values. Its holder is the name of the node.
const (
	LeaseName = "plndr-cp-lock"

	// RenewDeadline is how long the holder tries to renew the lease before it gives up the address.
	RenewDeadline = 10 * time.Second
	// RetryPeriod is the interval at which the holder renews the lease, and at which other nodes look whether they hold
	// it.
	RetryPeriod = 2 * time.Second
)

// Paths on the node, which prepare.sh and cleanup.sh also contain.
const (
	adminKubeconfig = "/etc/kubernetes/admin.conf" // path in the pod
	kubeconfigLink  = "/etc/kube-vip/kubeconfig"   // link to a kubeconfig of the node
	hostsFile       = "/etc/kube-vip/hosts"
)

// generated contains the output of kube-vip's generator.
//
//go:embed generated/*.yaml
var generated embed.FS

//go:embed prepare.sh
var prepareScript string

//go:embed cleanup.sh
var cleanupScript string

// Mode is the way in which kube-vip runs.
type Mode string

// Modes, which the scripts also contain.
const (
	// StaticPod runs a static pod on each control-plane node.
	StaticPod Mode = "StaticPod"
	// DaemonSet runs a pod of a DaemonSet on each control-plane node, and a static pod where the DaemonSet does not run
	// yet.
	DaemonSet Mode = "DaemonSet"
)

// A Config holds the settings that differ between clusters.
type Config struct {
	// Mode is the mode; empty means StaticPod.
	Mode Mode

	// Addresses are the endpoint of the control plane. They are unused IP addresses, at most one of each family, or one
	// DNS name in lower case, which kube-vip resolves to an IPv4 address.
	Addresses []string

	// Port is the port of the API servers themselves; 0 means DefaultPort.
	Port int32

	// Interface is the interface to which the addresses are added. Empty means the interface of the default route, or
	// the loopback interface with BGP.
	Interface string

	// Image is the full image reference of kube-vip; empty means DefaultImage. The manifest may not suit a release
	// other than DefaultImage's.
	Image string

	// DynamicDNS makes kube-vip request the address from a DHCP server under the DNS name. The DHCP server then creates
	// the DNS record.
	DynamicDNS bool

	// BGP announces the addresses to routers with BGP; nil means ARP.
	BGP *BGP
}

// Render returns the data of the Secret <cluster>-kube-vip. Equal configs result in equal data.
func Render(c Config) (map[string][]byte, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := readGenerated(c.manifest("pod"), pod); err != nil {
		return nil, err
	}
	c.apply(&pod.Spec, c.BGP.env())
	file := corev1.HostPathFile
	pod.Spec.Volumes = append(pod.Spec.Volumes, hostFile("kubeconfig", kubeconfigLink, &file))
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "kubeconfig", MountPath: adminKubeconfig, ReadOnly: true})
	data, err := yaml.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of kube-vip: %w", err)
	}
	return map[string][]byte{
		KeyManifest: data,
		KeyPrepare:  c.script(prepareScript),
		KeyCleanup:  c.script(cleanupScript),
	}, nil
}

// script returns a script with the mode of the config.
func (c *Config) script(text string) []byte {
	return []byte(strings.Replace(text, "\nmode="+string(StaticPod)+"\n", "\nmode="+string(c.Mode)+"\n", 1))
}

// manifest returns the name of a generated manifest, of which there is one for ARP and one for BGP.
func (c *Config) manifest(what string) string {
	if c.BGP != nil {
		return what + "-bgp"
	}
	return what + "-arp"
}

// decoded contains the generated manifests that were read, by name. Each is decoded once, because that takes longer than
// a copy.
var decoded sync.Map

// copier is a pointer to an object that can be copied.
type copier[T any] interface {
	*T
	DeepCopy() *T
	DeepCopyInto(into *T)
}

// readGenerated reads a generated manifest by its file name, without extension.
func readGenerated[T any, P copier[T]](name string, into P) error {
	if known, ok := decoded.Load(name); ok {
		known.(P).DeepCopyInto(into) //nolint:forcetypeassert // Each manifest has one type.
		return nil
	}
	raw, err := generated.ReadFile("generated/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("reading the generated manifest of kube-vip: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("decoding the generated manifest of kube-vip: %w", err)
	}
	decoded.Store(name, P(into.DeepCopy()))
	return nil
}

// apply sets the values of the cluster in a generated pod.
func (c *Config) apply(pod *corev1.PodSpec, bgp []corev1.EnvVar) {
	container := &pod.Containers[0]
	container.Image = c.Image
	values := append([]corev1.EnvVar{
		{Name: "address", Value: strings.Join(c.Addresses, ",")},
		{Name: "port", Value: strconv.Itoa(int(c.Port))},
		{Name: "vip_subnet", Value: c.subnets()},
	}, bgp...)
	if c.Interface != "" {
		values = append(values, corev1.EnvVar{Name: "vip_interface", Value: c.Interface})
	}
	if c.hasName() {
		values = append(values, corev1.EnvVar{Name: "dns_mode", Value: "ipv4"})
	}
	if c.DynamicDNS {
		values = append(values, corev1.EnvVar{Name: "vip_ddns", Value: "true"})
	}
	for _, value := range values {
		setEnv(container, value)
	}

	// Like the static pods of kubeadm, the pod must not be evicted first under node pressure.
	pod.PriorityClassName = "system-node-critical"
	pod.HostAliases = nil
	// Without a type, mounting a missing file creates a directory, which kubeadm rejects. With type File, the kubelet
	// retries until the file exists.
	file := corev1.HostPathFile
	pod.Volumes = []corev1.Volume{hostFile("hosts", hostsFile, &file)}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "hosts", MountPath: "/etc/hosts", ReadOnly: true}}
}

// subnets returns the prefix lengths of single addresses. Of two values, kube-vip uses the first for IPv4. For a DNS
// name, kube-vip 0.9 appends the text to each resolved address, so it must be the length of one family: IPv4.
func (c *Config) subnets() string {
	if len(c.Addresses) > 1 {
		return "32,128"
	}
	if addr, err := netip.ParseAddr(c.Addresses[0]); err == nil {
		return strconv.Itoa(addr.BitLen())
	}
	return "32"
}

// hasName reports whether the endpoint is a DNS name.
func (c *Config) hasName() bool { return !isIP(c.Addresses[0]) }

func hostFile(name, path string, kind *corev1.HostPathType) corev1.Volume {
	return corev1.Volume{
		Name: name,
		VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: kind},
		},
	}
}

func setEnv(container *corev1.Container, value corev1.EnvVar) {
	for i := range container.Env {
		if container.Env[i].Name == value.Name {
			container.Env[i] = value
			return
		}
	}
	container.Env = append(container.Env, value)
}
