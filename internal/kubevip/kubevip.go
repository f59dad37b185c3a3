// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"embed"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

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
	// DefaultImage is the release whose generator made the manifests.
	DefaultImage = "ghcr.io/kube-vip/kube-vip:v0.9.1"

	// DefaultPort is kubeadm's port of an API server.
	DefaultPort = 6443
)

// Where things are on the node. prepare.sh and cleanup.sh have them too.
const (
	adminKubeconfig = "/etc/kubernetes/admin.conf" // as the pod sees it
	kubeconfigLink  = "/etc/kube-vip/kubeconfig"   // which of the node's it is
	hostsFile       = "/etc/kube-vip/hosts"
)

// generated holds what kube-vip's generator makes.
//
//go:embed generated/*.yaml
var generated embed.FS

//go:embed prepare.sh
var prepareScript string

//go:embed cleanup.sh
var cleanupScript string

// Mode is what runs kube-vip.
type Mode string

// Modes, as the scripts have them, too.
const (
	// StaticPod is a static pod on each control-plane node.
	StaticPod Mode = "StaticPod"
	// DaemonSet is one pod of a DaemonSet on each, and a static pod where and until the DaemonSet does not run.
	DaemonSet Mode = "DaemonSet"
)

// A Config is what differs between clusters.
type Config struct {
	// Mode is StaticPod if empty.
	Mode Mode

	// Addresses are the endpoint of the control plane: IP addresses that nothing else uses, at most one of each family,
	// or one DNS name, in lower case, which kube-vip resolves to an IPv4 address.
	Addresses []string

	// Port of the API servers themselves; 0 means DefaultPort.
	Port int32

	// Interface that has the addresses; empty means that of the default route, with BGP the loopback interface.
	Interface string

	// Image of kube-vip, whole; empty means DefaultImage. With another release than DefaultImage's, the
	// manifest may not fit.
	Image string

	// DynamicDNS makes kube-vip ask a DHCP server for the address, in the name of the DNS name; the DHCP server then
	// writes the DNS record.
	DynamicDNS bool

	// BGP announces the addresses to routers instead of by ARP; nil: ARP.
	BGP *BGP
}

// Render returns the data of the Secret <cluster>-kube-vip. Equal configs give equal data.
func Render(c Config) (map[string][]byte, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := c.read("pod", pod); err != nil {
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

// script returns a script for the mode.
func (c *Config) script(text string) []byte {
	return []byte(strings.Replace(text, "\nmode="+string(StaticPod)+"\n", "\nmode="+string(c.Mode)+"\n", 1))
}

// read reads a generated manifest: a pod or a daemonset.
func (c *Config) read(what string, into any) error {
	if c.BGP != nil {
		return readGenerated(what+"-bgp", into)
	}
	return readGenerated(what+"-arp", into)
}

// readGenerated reads a generated manifest by the name of its file.
func readGenerated(name string, into any) error {
	raw, err := generated.ReadFile("generated/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("reading the generated manifest of kube-vip: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("decoding the generated manifest of kube-vip: %w", err)
	}
	return nil
}

// apply sets the cluster's values on a generated pod.
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

	// Like the static pods of kubeadm: not evicted first under node pressure.
	pod.PriorityClassName = "system-node-critical"
	pod.HostAliases = nil
	// Without a type, mounting a missing file creates a folder, which kubeadm refuses. With type File, the kubelet
	// retries until it exists.
	file := corev1.HostPathFile
	pod.Volumes = []corev1.Volume{hostFile("hosts", hostsFile, &file)}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "hosts", MountPath: "/etc/hosts", ReadOnly: true}}
}

// subnets are the lengths of the addresses' own prefixes; of two, kube-vip takes the first for IPv4. For a DNS name
// kube-vip 0.9 puts the text behind each address it finds, so it has to be one family: IPv4.
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
