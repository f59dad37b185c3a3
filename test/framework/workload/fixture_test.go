// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/ignition"
	bootstraptypes "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	vip     = "192.168.100.200"
	token   = "abcdef.0123456789abcdef"
	version = "v1.36.3"
)

// A fixture creates the VMs of one cluster, with bootstrap data from Cluster API's own renderer and guestinfo from the
// provider's.
type fixture struct {
	t            *testing.T
	certificates secret.Certificates
	version      string
	vip          string
	secondVIP    []string // the virtual IP of the second address family
	caHashes     []string
	format       guestinfo.Format
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t, certificates: secret.NewCertificatesForInitialControlPlane(nil), version: version, vip: vip}
	b.must(b.certificates.Generate())
	hashes, err := b.certificates.GetByPurpose(secret.ClusterCA).Hashes()
	b.must(err)
	b.caHashes = hashes
	return b
}

func (b *fixture) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) registration() bootstrapv1.NodeRegistrationOptions {
	if b.format == guestinfo.FormatIgnition {
		return bootstrapv1.NodeRegistrationOptions{
			Name:             "$LOCAL_HOSTNAME",
			KubeletExtraArgs: []bootstrapv1.Arg{{Name: "provider-id", Value: ptr.To("$PROVIDER_ID")}},
		}
	}
	return bootstrapv1.NodeRegistrationOptions{
		Name: "{{ local_hostname }}",
		KubeletExtraArgs: []bootstrapv1.Arg{
			{Name: "provider-id", Value: ptr.To("{{ ds.meta_data.provider_id }}")},
			{Name: "node-labels", Value: ptr.To("team=blue")},
		},
	}
}

// base returns the common part of all kinds of bootstrap data. Control planes include kube-vip.
func (b *fixture) base(controlPlane bool) cloudinit.BaseUserData {
	base := cloudinit.BaseUserData{KubernetesVersion: semver.MustParse(strings.TrimPrefix(b.version, "v"))}
	base.Users = []bootstrapv1.User{{Name: "capv", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}}}
	if b.format == guestinfo.FormatIgnition {
		base.PreKubeadmCommands = []string{
			". /etc/vcd/metadata.env",
			`sed -i "s|\$LOCAL_HOSTNAME|$LOCAL_HOSTNAME|; s|\$PROVIDER_ID|$PROVIDER_ID|" /etc/kubeadm.yml`,
		}
	}
	if !controlPlane {
		return base
	}
	data, err := kubevip.Render(kubevip.Config{Addresses: append([]string{b.vip}, b.secondVIP...)})
	b.must(err)
	base.AdditionalFiles = []bootstrapv1.File{
		{Path: "/etc/kubernetes/manifests/kube-vip.yaml", Permissions: "0600", Content: string(data[kubevip.KeyManifest])},
		{Path: "/etc/kube-vip/prepare.sh", Permissions: "0700", Content: string(data[kubevip.KeyPrepare])},
		{Path: "/etc/kube-vip/cleanup.sh", Permissions: "0700", Content: string(data[kubevip.KeyCleanup])},
	}
	base.PreKubeadmCommands = append(base.PreKubeadmCommands, "/etc/kube-vip/prepare.sh")
	base.PostKubeadmCommands = []string{"/etc/kube-vip/cleanup.sh"}
	return base
}

func (b *fixture) initData() []byte {
	v := semver.MustParse(strings.TrimPrefix(b.version, "v"))
	cluster, err := bootstraptypes.MarshalClusterConfigurationForVersion(
		&bootstrapv1.ClusterConfiguration{ControlPlaneEndpoint: b.vip + ":6443"}, v,
		&upstream.AdditionalData{KubernetesVersion: &b.version, ClusterName: ptr.To("demo")})
	b.must(err)
	initial, err := bootstraptypes.MarshalInitConfigurationForVersion(
		&bootstrapv1.InitConfiguration{NodeRegistration: b.registration()}, v)
	b.must(err)
	input := &cloudinit.ControlPlaneInput{
		BaseUserData:         b.base(true),
		Certificates:         b.certificates,
		ClusterConfiguration: cluster,
		InitConfiguration:    initial,
	}
	var data []byte
	if b.format == guestinfo.FormatIgnition {
		data, _, err = ignition.NewInitControlPlane(&ignition.ControlPlaneInput{ControlPlaneInput: input})
	} else {
		data, err = cloudinit.NewInitControlPlane(input)
	}
	b.must(err)
	return data
}

func (b *fixture) joinConfiguration(controlPlane bool) string {
	join := &bootstrapv1.JoinConfiguration{NodeRegistration: b.registration()}
	join.Discovery.BootstrapToken = bootstrapv1.BootstrapTokenDiscovery{
		Token:             token,
		APIServerEndpoint: b.vip + ":6443",
		CACertHashes:      b.caHashes,
	}
	if controlPlane {
		join.ControlPlane = &bootstrapv1.JoinControlPlane{}
	}
	text, err := bootstraptypes.MarshalJoinConfigurationForVersion(join,
		semver.MustParse(strings.TrimPrefix(b.version, "v")))
	b.must(err)
	return text
}

func (b *fixture) workerData() []byte {
	data, err := cloudinit.NewNode(&cloudinit.NodeInput{
		BaseUserData:      b.base(false),
		JoinConfiguration: b.joinConfiguration(false),
	})
	b.must(err)
	return data
}

// ignitionWorkerData returns the worker's data in the Ignition format.
func (b *fixture) ignitionWorkerData() []byte {
	data, _, err := ignition.NewNode(&ignition.NodeInput{
		NodeInput: &cloudinit.NodeInput{BaseUserData: b.base(false), JoinConfiguration: b.joinConfiguration(false)},
	})
	b.must(err)
	return data
}

func (b *fixture) controlPlaneData() []byte {
	data, err := cloudinit.NewJoinControlPlane(&cloudinit.ControlPlaneJoinInput{
		BaseUserData:      b.base(true),
		Certificates:      b.certificates,
		JoinConfiguration: b.joinConfiguration(true),
	})
	b.must(err)
	return data
}

// vm returns a VM with one NIC in a static pool, as the provider configures it.
func (b *fixture) vm(name string, number int, data []byte) vcdsim.GuestVM {
	id := fmt.Sprintf("00000000-0000-0000-0000-%012d", number)
	mac := fmt.Sprintf("00:50:56:01:00:%02x", number)
	address := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, 100, byte(10 + number)}), 24)
	info, err := guestinfo.Render(guestinfo.Input{
		InstanceID:    "instance-" + name,
		Hostname:      name,
		ProviderID:    "vmware-cloud-director://urn:vcloud:vm:" + id,
		Format:        b.format,
		BootstrapData: data,
		NICs: []guestinfo.NIC{{
			MAC:       mac,
			Name:      "eth0",
			Mode:      guestinfo.ModePool,
			Addresses: []netip.Prefix{address},
			Primary:   true,
			Gateways:  []netip.Addr{netip.MustParseAddr("192.168.100.1")},
			DNS:       []netip.Addr{netip.MustParseAddr("192.168.100.1")},
		}},
	})
	b.must(err)
	return vcdsim.GuestVM{
		ID:                id,
		Name:              name,
		ExtraConfig:       info,
		KubernetesVersion: b.version,
		NICs: []vcdsim.GuestNIC{{
			MAC:     strings.ToUpper(mac),
			Network: "nodes",
			Mode:    "POOL",
			Primary: true,
			Address: address.Addr(),
			Prefix:  address.Masked(),
		}},
	}
}

// reboot returns the VM as the simulator passes it after the guest's first report.
func reboot(vm vcdsim.GuestVM, report vcdsim.GuestReport) vcdsim.GuestVM {
	vm.ExtraConfig = maps.Clone(vm.ExtraConfig)
	maps.Copy(vm.ExtraConfig, report.ExtraConfig)
	return vm
}

func start(t *testing.T, options workload.Options) *workload.Workloads {
	t.Helper()
	w, err := workload.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// clients returns a clientset for the cluster, with a kubeconfig that its CA signed, through the proxy.
func clients(g Gomega, w *workload.Workloads) *kubernetes.Clientset {
	data, err := w.AdminKubeconfig("demo")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://" + vip + ":6443"))
	set, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return set
}

// addToken creates the bootstrap token in the cluster, as the kubeadm bootstrap provider does before it renders data
// for joining machines.
func addToken(ctx context.Context, g Gomega, set *kubernetes.Clientset) {
	id, secretPart, _ := strings.Cut(token, ".")
	_, err := set.CoreV1().Secrets("kube-system").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Data:       map[string][]byte{"token-id": []byte(id), "token-secret": []byte(secretPart)},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}
