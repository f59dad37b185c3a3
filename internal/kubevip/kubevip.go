package kubevip

import (
	_ "embed"
	"fmt"
	"net/netip"
	"regexp"
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
	// DefaultImage is the release whose generator made the manifest.
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

//go:embed manifest.yaml
var manifest []byte

//go:embed prepare.sh
var prepareScript []byte

//go:embed cleanup.sh
var cleanupScript []byte

// A Config is what differs between clusters.
type Config struct {
	// Address is the endpoint of the control plane: an IP address that nothing else uses, or a DNS name, in
	// lower case, which kube-vip resolves to an IPv4 address.
	Address string

	// Port of the API servers themselves; 0 means DefaultPort.
	Port int32

	// Interface on which the address is announced; empty means that of the default route.
	Interface string

	// Image of kube-vip, whole; empty means DefaultImage. With another release than DefaultImage's, the
	// manifest may not fit.
	Image string

	// DynamicDNS makes kube-vip ask a DHCP server for the address, in the name of Address, which has to be a DNS
	// name; the DHCP server then writes the DNS record.
	DynamicDNS bool
}

// Render returns the data of the Secret <cluster>-kube-vip. Equal configs give equal data.
func Render(c Config) (map[string][]byte, error) {
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if c.Image == "" {
		c.Image = DefaultImage
	}
	if err := c.validate(); err != nil {
		return nil, err
	}

	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(manifest, pod); err != nil {
		return nil, fmt.Errorf("decoding the generated manifest of kube-vip: %w", err)
	}
	c.apply(pod)
	data, err := yaml.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of kube-vip: %w", err)
	}
	return map[string][]byte{KeyManifest: data, KeyPrepare: prepareScript, KeyCleanup: cleanupScript}, nil
}

// apply sets the cluster's values on the generated pod.
func (c Config) apply(pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	container.Image = c.Image
	setEnv(container, "address", c.Address)
	setEnv(container, "port", strconv.Itoa(int(c.Port)))
	setEnv(container, "vip_subnet", c.subnet())
	if c.Interface != "" {
		setEnv(container, "vip_interface", c.Interface)
	}
	if !isIP(c.Address) {
		setEnv(container, "dns_mode", "ipv4")
	}
	if c.DynamicDNS {
		setEnv(container, "vip_ddns", "true")
	}

	// Like the static pods of kubeadm: not evicted first under node pressure.
	pod.Spec.PriorityClassName = "system-node-critical"
	pod.Spec.HostAliases = nil
	// Without a type, mounting a missing file creates a folder, which kubeadm refuses. With type File, the kubelet
	// retries until it exists.
	file := corev1.HostPathFile
	pod.Spec.Volumes = []corev1.Volume{
		hostFile("kubeconfig", kubeconfigLink, &file),
		hostFile("hosts", hostsFile, &file),
	}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "kubeconfig", MountPath: adminKubeconfig, ReadOnly: true},
		{Name: "hosts", MountPath: "/etc/hosts", ReadOnly: true},
	}
}

// subnet is the length of the address's own prefix. For a DNS name kube-vip 0.9 puts the text behind each
// address it finds, so it has to be one family: IPv4.
func (c Config) subnet() string {
	if addr, err := netip.ParseAddr(c.Address); err == nil {
		return strconv.Itoa(addr.BitLen())
	}
	return "32"
}

func hostFile(name, path string, kind *corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: path, Type: kind},
	}}
}

func setEnv(container *corev1.Container, name, value string) {
	for i := range container.Env {
		if container.Env[i].Name == name {
			container.Env[i].Value = value
			return
		}
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
}

var (
	dnsLabel      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	digits        = regexp.MustCompile(`^[0-9]+$`)
	interfaceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)
	imageName     = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._:/@-]*[a-zA-Z0-9])?$`)
)

// validate refuses what would only fail on the node. It is strict about characters too, because a template engine
// processes the file.
func (c Config) validate() error {
	if err := ValidateAddress(c.Address); err != nil {
		return err
	}
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", c.Port)
	}
	if c.Interface != "" && !interfaceName.MatchString(c.Interface) {
		return fmt.Errorf("%q is not an interface name", c.Interface)
	}
	if !imageName.MatchString(c.Image) {
		return fmt.Errorf("%q is not the name of an image", c.Image)
	}
	if c.DynamicDNS && isIP(c.Address) {
		return fmt.Errorf("dynamic DNS needs a DNS name, %s is an address", c.Address)
	}
	return nil
}

// ValidateAddress checks that kube-vip can announce address, an IP address or a DNS name.
func ValidateAddress(address string) error {
	if addr, err := netip.ParseAddr(address); err == nil {
		return validateIP(addr)
	}
	labels := strings.Split(address, ".")
	if len(address) > 253 || digits.MatchString(labels[len(labels)-1]) {
		return fmt.Errorf("address %q is neither an IP address nor a DNS name", address)
	}
	for _, label := range labels {
		if !dnsLabel.MatchString(label) {
			return fmt.Errorf("address %q is neither an IP address nor a DNS name in lower case", address)
		}
	}
	return nil
}

func validateIP(addr netip.Addr) error {
	if addr.Is4In6() || addr.Zone() != "" || !addr.IsGlobalUnicast() {
		return fmt.Errorf("address %s cannot be announced on a network of nodes", addr)
	}
	return nil
}

func isIP(address string) bool {
	_, err := netip.ParseAddr(address)
	return err == nil
}
