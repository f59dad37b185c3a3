// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// A plan is the first boot of a guest, computed from its guestinfo and the Kubernetes version of its template.
type plan struct {
	// init selects kubeadm init instead of kubeadm join.
	init         bool
	controlPlane bool
	endpoint     string
	version      string
	node         nodeSpec
	kubeVIP      *corev1.Pod
	// published contains the guestinfo keys that the guest publishes after kubeadm has succeeded.
	published map[string]string

	// The following fields are for init.
	clusterName   string
	clusterConfig string
	certSANs      []string

	// The authorities are for init and for joining control plane nodes.
	ca, etcdCA authority

	// The following fields are for join.
	token    string
	caHashes []string
	anyCA    bool
}

// nodeSpec is the Node that the kubelet registers.
type nodeSpec struct {
	name       string
	providerID string
	labels     map[string]string
	taints     []corev1.Taint
	addresses  []corev1.NodeAddress
}

// planFor reads the kubeadm configuration in the user data. It returns nil without an error if the guest does not start
// kubeadm.
func planFor(id guest.Identity, templateVersion string) (*plan, error) {
	run, found, err := findKubeadm(id.Userdata)
	if err != nil || !found {
		return nil, err
	}
	p := &plan{
		init:      run.verb == "init",
		published: run.published,
	}
	if p.init {
		err = p.readInit(run, id, templateVersion)
	} else {
		err = p.readJoin(run, id, templateVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeadm %s: %w", run.verb, err)
	}
	if p.controlPlane {
		if err := p.readKubeVIP(id.Userdata); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *plan) readInit(run kubeadmRun, id guest.Identity, templateVersion string) error {
	cluster, found := run.doc("ClusterConfiguration")
	if !found {
		return errors.New("no ClusterConfiguration")
	}
	initDoc, found := run.doc("InitConfiguration")
	if !found {
		initDoc.APIVersion = cluster.APIVersion
	}
	p.controlPlane = true
	p.clusterName = cluster.ClusterName
	p.clusterConfig = cluster.text
	p.certSANs = cluster.APIServer.CertSANs
	if p.clusterName == "" {
		p.clusterName = "kubernetes"
	}
	p.version = cluster.KubernetesVersion
	if p.version == "" {
		p.version = templateVersion
	}
	if templateVersion != "" && !sameVersion(p.version, templateVersion) {
		return fmt.Errorf("ClusterConfiguration requires Kubernetes %s but the template contains %s", p.version,
			templateVersion)
	}
	var err error
	if p.endpoint, err = endpoint(cluster.ControlPlaneEndpoint, id); err != nil {
		return fmt.Errorf("ClusterConfiguration.controlPlaneEndpoint: %w", err)
	}
	if err := p.readAuthorities(id.Userdata); err != nil {
		return err
	}
	return p.readNode(initDoc, id)
}

func (p *plan) readJoin(run kubeadmRun, id guest.Identity, templateVersion string) error {
	join, found := run.doc("JoinConfiguration")
	if !found {
		return errors.New("no JoinConfiguration")
	}
	p.controlPlane = join.ControlPlane != nil
	p.version = templateVersion
	token := join.Discovery.BootstrapToken
	if token == nil {
		return errors.New("JoinConfiguration.discovery has no bootstrapToken, the only discovery that the simulated guest supports")
	}
	if token.Token == "" {
		return errors.New("JoinConfiguration.discovery.bootstrapToken.token is empty")
	}
	if len(token.CACertHashes) == 0 && !token.UnsafeSkipCAVerification {
		return errors.New("JoinConfiguration.discovery.bootstrapToken has neither caCertHashes nor unsafeSkipCAVerification")
	}
	p.token = token.Token
	p.caHashes = token.CACertHashes
	p.anyCA = token.UnsafeSkipCAVerification
	if token.APIServerEndpoint == "" {
		return errors.New("JoinConfiguration.discovery.bootstrapToken.apiServerEndpoint is empty")
	}
	var err error
	if p.endpoint, err = endpoint(token.APIServerEndpoint, id); err != nil {
		return fmt.Errorf("JoinConfiguration.discovery.bootstrapToken.apiServerEndpoint: %w", err)
	}
	if p.controlPlane {
		if err := p.readAuthorities(id.Userdata); err != nil {
			return err
		}
	}
	return p.readNode(join, id)
}

// readAuthorities reads the certificate authorities that Cluster API passes to control plane nodes.
func (p *plan) readAuthorities(u *guest.Userdata) error {
	var err error
	if p.ca, err = readAuthority(u, "/etc/kubernetes/pki/ca"); err != nil {
		return err
	}
	if p.etcdCA, err = readAuthority(u, "/etc/kubernetes/pki/etcd/ca"); err != nil {
		return err
	}
	for _, path := range []string{"/etc/kubernetes/pki/sa.key", "/etc/kubernetes/pki/sa.pub"} {
		if f, found := u.File(path); !found || strings.TrimSpace(f.Content) == "" {
			return fmt.Errorf("%s is not written: service account tokens would differ between control planes", path)
		}
	}
	return nil
}

// readNode computes the Node that the kubelet registers from the node registration, the hostname and the addresses of
// the guest.
func (p *plan) readNode(doc kubeadmConfig, id guest.Identity) error {
	args, err := doc.kubeletArgs()
	if err != nil {
		return err
	}
	n := nodeSpec{name: strings.ToLower(doc.NodeRegistration.Name), providerID: args["provider-id"]}
	if n.name == "" {
		n.name = strings.ToLower(id.Hostname)
	}
	if problems := validation.IsDNS1123Subdomain(n.name); len(problems) > 0 {
		return fmt.Errorf("node name %q: %s", n.name, problems[0])
	}
	if strings.ContainsAny(n.providerID, "{}$ ") {
		return fmt.Errorf("kubelet argument provider-id %q was not rendered", n.providerID)
	}
	n.labels = map[string]string{
		"kubernetes.io/hostname": n.name,
		"kubernetes.io/os":       "linux",
		"kubernetes.io/arch":     "amd64",
	}
	if err := addLabels(n.labels, args["node-labels"]); err != nil {
		return fmt.Errorf("kubelet argument node-labels: %w", err)
	}
	if n.taints, err = p.taints(doc, args); err != nil {
		return err
	}
	if p.controlPlane {
		n.labels[controlPlaneRole] = ""
		n.labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	}
	if n.addresses, err = nodeAddresses(args, n.name, id); err != nil {
		return err
	}
	p.node = n
	return nil
}

// taints returns the taints of the registration, or kubeadm's default taints of control plane nodes, and the taints
// that the kubelet is configured with or adds itself.
func (p *plan) taints(doc kubeadmConfig, args map[string]string) ([]corev1.Taint, error) {
	taints, err := parseTaints(args["register-with-taints"])
	if err != nil {
		return nil, fmt.Errorf("kubelet argument register-with-taints: %w", err)
	}
	switch {
	case doc.NodeRegistration.Taints != nil:
		taints = append(taints, *doc.NodeRegistration.Taints...)
	case p.controlPlane:
		taints = append(taints, corev1.Taint{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule})
	}
	if args["cloud-provider"] == "external" {
		taints = append(taints,
			corev1.Taint{
				Key:    "node.cloudprovider.kubernetes.io/uninitialized",
				Value:  "true",
				Effect: corev1.TaintEffectNoSchedule,
			})
	}
	return taints, nil
}

// nodeAddresses returns the addresses that the kubelet sets. With an external cloud provider, a node has no address
// until the cloud controller manager sets one, unless --node-ip is set.
func nodeAddresses(args map[string]string, name string, id guest.Identity) ([]corev1.NodeAddress, error) {
	hostname := corev1.NodeAddress{Type: corev1.NodeHostName, Address: name}
	if text := args["node-ip"]; text != "" && text != "::" && text != "0.0.0.0" {
		var out []corev1.NodeAddress
		for _, part := range strings.Split(text, ",") {
			addr, err := netip.ParseAddr(part)
			if err != nil || !hasAddress(id, addr) {
				return nil, fmt.Errorf(
					"kubelet argument node-ip %q is not an address of this guest: kubelet would not start", part)
			}
			out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
		}
		return append(out, hostname), nil
	}
	if args["cloud-provider"] == "external" {
		return nil, nil
	}
	addr := id.Address()
	if !addr.IsValid() {
		return nil, errors.New("the guest has no address, kubelet would not start")
	}
	return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: addr.String()}, hostname}, nil
}

func hasAddress(id guest.Identity, addr netip.Addr) bool {
	for _, prefixes := range id.Addresses {
		for _, p := range prefixes {
			if p.Addr() == addr {
				return true
			}
		}
	}
	return false
}

func addLabels(labels map[string]string, text string) error {
	for _, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return fmt.Errorf("%q is not key=value", pair)
		}
		labels[key] = value
	}
	return nil
}

func parseTaints(text string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		pair, effect, found := strings.Cut(item, ":")
		if !found {
			return nil, fmt.Errorf("%q is not key=value:effect", item)
		}
		key, value, _ := strings.Cut(pair, "=")
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints, nil
}

// endpoint normalizes host[:port]. Like kubeadm, it uses the guest's own address if the host is missing.
func endpoint(text string, id guest.Identity) (string, error) {
	if text == "" {
		if !id.Address().IsValid() {
			return "", errors.New("empty, and the guest has no address")
		}
		text = id.Address().String()
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host = strings.Trim(text, "[]")
		port = "6443"
	}
	if host == "" || port == "0" {
		return "", fmt.Errorf("%q names no host and port", text)
	}
	return strings.ToLower(net.JoinHostPort(host, port)), nil
}

func sameVersion(a, b string) bool {
	trim := func(v string) string { v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+"); return v }
	return trim(a) == trim(b)
}
