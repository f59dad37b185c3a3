// SPDX-License-Identifier: Apache-2.0

// Package templates_test checks the cluster templates without an API server: clusterctl can render them, all their
// fields exist, and all references resolve. test/templates applies them to a real API server.
package templates_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
)

var flavors = []string{"", "development", "proxy", "bgp", "dual-stack", "edge-gateway", "flatcar", "ipam", "zones"}

// withKubeVIP lists the flavors whose endpoint kube-vip announces.
var withKubeVIP = []string{"", "development", "proxy", "bgp", "dual-stack", "flatcar", "ipam", "zones"}

// Patterns of variables without and with a default.
var (
	needed   = testflavors.Rendered()
	optional = testflavors.Optional()
)

func TestRenderWithNeededVariablesAlone(t *testing.T) {
	for _, flavor := range flavors {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)

			objects := render(t, flavor, needed)

			g.Expect(find[*clusterv1.Cluster](objects, "demo").Labels).To(HaveKeyWithValue("cni", "none"))
			cluster := find[*infrav1.VCDCluster](objects, "demo")
			g.Expect(cluster.Spec.OVDCNetwork).To(Equal("nodes"))
			if slices.Contains(withKubeVIP, flavor) {
				if flavor != "ipam" {
					g.Expect(cluster.Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.200"))
				}
				g.Expect(*cluster.Spec.ControlPlaneLoadBalancer.KubeVIP).To(And(HaveField("Interface", ""), HaveField("Image", "")))
			}
			machine := find[*infrav1.VCDMachineTemplate](objects, "demo-control-plane").Spec.Template.Spec
			machine.Networks = nil
			g.Expect(machine).To(Equal(infrav1.VCDMachineSpec{
				Catalog:  "kubernetes",
				Template: "ubuntu-2404-kube-v1.36.3",
			}))
			managers := find[*corev1.Secret](objects, "demo-credentials")
			g.Expect(slices.Collect(maps.Values(managers.Data))).To(HaveEach(BeEmpty()))
			ccms := find[*corev1.Secret](objects, "demo-ccm-credentials")
			g.Expect(ccms.Data).To(HaveKeyWithValue(infrav1.SecretUsername, []byte("ccm")))
			g.Expect(ccms.Data[infrav1.SecretAPIToken]).To(BeEmpty())
			control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec
			g.Expect(control.Users[0].SSHAuthorizedKeys).To(BeEmpty())
		})
	}
}

// TestNoAddressIsTyped checks that users of flavor ipam do not need to set any address.
func TestNoAddressIsTyped(t *testing.T) {
	g := NewWithT(t)
	all := maps.Clone(needed)
	maps.Copy(all, optional)
	delete(all, "CONTROL_PLANE_ENDPOINT_IP")

	objects := render(t, "ipam", all)

	endpoint := find[*infrav1.VCDCluster](objects, "demo").Spec.ControlPlaneLoadBalancer.KubeVIP
	g.Expect(endpoint.AddressSource).To(Equal(infrav1.VIPSourceIPAM))
	g.Expect(endpoint.PoolRefs).To(ConsistOf(HaveField("Name", "virtual-ips")))
	other := infrav1.IPPoolReference{Name: "nodes", Kind: "ExamplePool", APIGroup: "ipam.example.com"}
	for _, name := range []string{"demo-control-plane", "demo-md-0"} {
		machine := find[*infrav1.VCDMachineTemplate](objects, name).Spec.Template.Spec
		g.Expect(machine.Networks).To(ConsistOf(HaveField("PoolRefs", ConsistOf(other))))
	}
}

func TestRenderWithAllVariables(t *testing.T) {
	g := NewWithT(t)
	all := maps.Clone(needed)
	maps.Copy(all, optional)

	objects := render(t, "", all)

	g.Expect(find[*clusterv1.Cluster](objects, "demo").Labels).To(HaveKeyWithValue("cni", optional["CNI"]))
	cluster := find[*infrav1.VCDCluster](objects, "demo")
	g.Expect(cluster.Spec.ControlPlaneLoadBalancer.KubeVIP.Interface).To(Equal("ens192"))
	g.Expect(cluster.Spec.ControlPlaneLoadBalancer.KubeVIP.Image).To(Equal("registry.example.com/kube-vip:v0.9.1"))
	worker := find[*infrav1.VCDMachineTemplate](objects, "demo-md-0").Spec.Template.Spec
	g.Expect(worker.SizingPolicy).To(Equal("small"))
	g.Expect(worker.DiskSize.String()).To(Equal("40Gi"))
	secret := find[*corev1.Secret](objects, "demo-credentials")
	g.Expect(secret.Data).To(HaveKeyWithValue(infrav1.SecretPassword, []byte("password")))
	g.Expect(secret.Data).To(HaveKeyWithValue(infrav1.SecretCABundle, []byte("-----BEGIN")))
	control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec
	g.Expect(control.Users[0].SSHAuthorizedKeys).To(Equal([]string{optional["SSH_PUBLIC_KEY"]}))
}

func TestEveryVariableIsKnownAndDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "get-started", "cluster-templates.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, flavor := range append(slices.Clone(flavors), "topology") {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)

			variables, err := yamlprocessor.NewSimpleProcessor().GetVariableMap(read(t, flavor))

			g.Expect(err).NotTo(HaveOccurred())
			for name, fallback := range variables {
				known := needed
				if fallback != nil {
					known = optional
				}
				g.Expect(known).To(HaveKey(name))
				g.Expect(string(page)).To(ContainSubstring("`"+name+"`"), "docs/get-started/cluster-templates.md")
			}
		})
	}
}

func TestEveryFlavorWithKubeVIPTakesItsImageAndInterface(t *testing.T) {
	for _, flavor := range append(slices.Clone(withKubeVIP), "topology") {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)

			variables, err := yamlprocessor.NewSimpleProcessor().GetVariableMap(read(t, flavor))

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(variables).To(And(HaveKey("KUBE_VIP_IMAGE"), HaveKey("VIP_NETWORK_INTERFACE")),
				"sites without internet take kube-vip from a registry of their own")
		})
	}
}

func TestReferencesPointToObjectsOfTheTemplate(t *testing.T) {
	for _, flavor := range flavors {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)

			objects := render(t, flavor, needed)

			cluster := find[*clusterv1.Cluster](objects, "demo")
			refs := []clusterv1.ContractVersionedObjectReference{
				cluster.Spec.InfrastructureRef,
				cluster.Spec.ControlPlaneRef,
			}
			for _, object := range objects {
				switch o := object.(type) {
				case *controlplanev1.KubeadmControlPlane:
					refs = append(refs, o.Spec.MachineTemplate.Spec.InfrastructureRef)
				case *clusterv1.MachineDeployment:
					refs = append(refs, o.Spec.Template.Spec.InfrastructureRef,
						o.Spec.Template.Spec.Bootstrap.ConfigRef)
				case *infrav1.VCDIdentity:
					g.Expect(find[*corev1.Secret](objects, o.Spec.SecretRef.Name)).NotTo(BeNil())
				case *infrav1.VCDCluster:
					for _, ref := range []*infrav1.IdentityReference{
						&o.Spec.IdentityRef,
						o.Spec.CloudProvider.IdentityRef,
					} {
						g.Expect(find[*infrav1.VCDIdentity](objects, ref.Name)).NotTo(BeNil())
					}
				}
			}
			for _, ref := range refs {
				g.Expect(objects).To(ContainElement(Satisfy(func(o client.Object) bool {
					kind := o.GetObjectKind().GroupVersionKind()
					return kind.Group == ref.APIGroup && kind.Kind == ref.Kind && o.GetName() == ref.Name
				})), "%s %s", ref.Kind, ref.Name)
			}
		})
	}
}

func TestZonesHaveAPoolOfWorkersEach(t *testing.T) {
	g := NewWithT(t)

	objects := render(t, "zones", needed)

	for _, zone := range []string{"a", "b", "c"} {
		pool := find[*clusterv1.MachineDeployment](objects, "demo-md-"+zone)
		g.Expect(pool.Spec.Template.Spec.FailureDomain).To(Equal("demo-" + zone))
		g.Expect(find[*infrav1.VCDDeploymentZone](objects, "demo-"+zone).Spec.FailureDomain).To(Equal("demo-" + zone))
	}
}

func TestNodesTellKubernetesWhoTheyAre(t *testing.T) {
	const (
		hostname, providerID = "{{ local_hostname }}", "{{ ds.meta_data.provider_id }}"
		topology             = "topology.kubernetes.io/region={{ ds.meta_data.topology_region }},topology.kubernetes.io/zone={{ ds.meta_data.topology_zone }}"
	)
	for _, flavor := range flavors {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)
			hostname := hostname
			providerID := providerID
			if flavor == "flatcar" {
				hostname = "$LOCAL_HOSTNAME"
				providerID = "$PROVIDER_ID"
			}

			objects := render(t, flavor, needed)

			control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec
			registrations := []bootstrapv1.NodeRegistrationOptions{
				control.InitConfiguration.NodeRegistration, control.JoinConfiguration.NodeRegistration,
			}
			if workers := find[*bootstrapv1.KubeadmConfigTemplate](objects, "demo-md-0"); workers != nil {
				registrations = append(registrations, workers.Spec.Template.Spec.JoinConfiguration.NodeRegistration)
			}
			for _, registration := range registrations {
				g.Expect(registration.Name).To(Equal(hostname))
				args := []bootstrapv1.Arg{
					{Name: "provider-id", Value: new(providerID)},
					{Name: "cloud-provider", Value: new("external")},
				}
				if flavor == "zones" {
					args = append(args, bootstrapv1.Arg{Name: "node-labels", Value: new(topology)})
				}
				g.Expect(registration.KubeletExtraArgs).To(ConsistOf(args), "Nodes wait for the cloud controller manager")
			}
			for _, o := range objects {
				if c, ok := o.(*infrav1.VCDCluster); ok {
					g.Expect(c.Spec.CloudProvider.Mode).To(Equal(infrav1.CloudProviderManaged))
				}
			}
		})
	}
}

func TestTheCloudControllerManagerHasAnIdentityOfItsOwn(t *testing.T) {
	for _, flavor := range flavors {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)
			with := maps.Clone(needed)
			with["VCD_USERNAME_B64"] = "Y2FwdmNk"
			with["VCD_PASSWORD_B64"] = "cGFzc3dvcmQ="
			with["VCD_CCM_USERNAME_B64"] = ""
			with["VCD_CCM_PASSWORD_B64"] = ""
			with["VCD_CCM_API_TOKEN_B64"] = "Y2NtLXRva2Vu"

			objects := render(t, flavor, with)

			cluster := find[*infrav1.VCDCluster](objects, "demo")
			managers := find[*infrav1.VCDIdentity](objects, cluster.Spec.IdentityRef.Name).Spec
			g.Expect(managers.ShareWithClusters).To(BeNil(), "the manager's credentials stay with the manager")
			ccms := find[*infrav1.VCDIdentity](objects, cluster.Spec.CloudProvider.IdentityRef.Name).Spec
			g.Expect(ccms.ShareWithClusters).To(HaveValue(BeTrue()), "or it gets no credentials")
			g.Expect(ccms.Site).To(Equal(managers.Site))
			g.Expect(ccms.SecretRef).NotTo(Equal(managers.SecretRef))
			secret := find[*corev1.Secret](objects, ccms.SecretRef.Name)
			g.Expect(secret.Data).To(HaveKeyWithValue(infrav1.SecretAPIToken, []byte("ccm-token")))
			g.Expect(secret.Data[infrav1.SecretPassword]).To(BeEmpty(), "nothing of the manager's is a default")
		})
	}
}

func TestAVariableGivesTheManagersCredentialsToTheCloudControllerManager(t *testing.T) {
	for _, flavor := range flavors {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)
			with := maps.Clone(needed)
			with["VCD_CCM_CREDENTIALS_SECRET"] = "demo-credentials"

			objects := render(t, flavor, with)

			g.Expect(find[*infrav1.VCDIdentity](objects, "demo-ccm").Spec.SecretRef.Name).To(Equal("demo-credentials"))
			g.Expect(find[*infrav1.VCDIdentity](objects, "demo").Spec.ShareWithClusters).To(BeNil())
		})
	}
}

func TestControlPlanesBehindTheEdgeGatewayNeedNoKubeVIP(t *testing.T) {
	g := NewWithT(t)
	with := maps.Clone(needed)
	delete(with, "CONTROL_PLANE_ENDPOINT_IP")
	with["CONTROL_PLANE_ENDPOINT_PORT"] = "443"

	objects := render(t, "edge-gateway", with)

	cluster := find[*infrav1.VCDCluster](objects, "demo")
	g.Expect(cluster.Spec.ControlPlaneLoadBalancer).To(Equal(infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointEdgeGateway}))
	g.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Port: 443}))
	control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec
	g.Expect(control.Files).To(BeEmpty())
	g.Expect(control.PreKubeadmCommands).To(BeEmpty())
}

func TestControlPlanesTakeKubeVIPFromTheSecret(t *testing.T) {
	for _, flavor := range withKubeVIP {
		t.Run(nameOf(flavor), func(t *testing.T) {
			g := NewWithT(t)

			objects := render(t, flavor, needed)

			control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec
			paths := map[string]string{}
			for _, file := range control.Files {
				if file.ContentFrom.Secret.Name == "demo-kube-vip" {
					paths[file.ContentFrom.Secret.Key] = file.Path
				}
			}
			g.Expect(paths).To(HaveKeyWithValue(kubevip.KeyManifest, "/etc/kubernetes/manifests/kube-vip.yaml"))
			g.Expect(control.PreKubeadmCommands).To(ContainElement(paths[kubevip.KeyPrepare]))
			g.Expect(control.PostKubeadmCommands).To(ConsistOf(paths[kubevip.KeyCleanup]))
		})
	}
}

// TestIgnitionPutsTheMetadataIntoKubeadmsConfiguration runs the commands of the flavor's nodes on sample files.
func TestIgnitionPutsTheMetadataIntoKubeadmsConfiguration(t *testing.T) {
	objects := render(t, "flatcar", needed)
	for name, config := range map[string]bootstrapv1.KubeadmConfigSpec{
		"control plane": find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec,
		"workers":       find[*bootstrapv1.KubeadmConfigTemplate](objects, "demo-md-0").Spec.Template.Spec,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(config.Format).To(Equal(bootstrapv1.Ignition))
			g.Expect(config.Users).To(ConsistOf(HaveField("Name", "core")))
			root := t.TempDir()
			file := filepath.Join(root, "etc", "kubeadm.yml")
			metadata := filepath.Join(root, "etc", "vcd", "metadata.env")
			g.Expect(os.MkdirAll(filepath.Dir(metadata), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(metadata, []byte("LOCAL_HOSTNAME='node'\nPROVIDER_ID='cloud://urn:vm:1'\n"), 0o600)).To(Succeed())
			g.Expect(os.WriteFile(file, []byte("name: $LOCAL_HOSTNAME\nvalue: $PROVIDER_ID\nother: $HOME\n"), 0o600)).To(Succeed())
			script := strings.ReplaceAll(strings.Join(config.PreKubeadmCommands[:2], "\n"), "/etc/", root+"/etc/")

			out, err := exec.CommandContext(t.Context(), "bash", "-ec", script).CombinedOutput()

			g.Expect(err).NotTo(HaveOccurred(), string(out))
			filled, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(filled)).To(Equal("name: node\nvalue: cloud://urn:vm:1\nother: $HOME\n"))
		})
	}
}

// proxyPaths maps the keys of the Secret with the proxy settings to their paths on nodes.
var proxyPaths = map[string]string{
	nodeproxy.KeyAPT:        "/etc/apt/apt.conf.d/95proxy",
	nodeproxy.KeySystemd:    "/etc/systemd/system.conf.d/95-proxy.conf",
	nodeproxy.KeyContainerd: "/etc/systemd/system/containerd.service.d/95-proxy.conf",
	nodeproxy.KeyKubeadm:    "/etc/systemd/system/cloud-final.service.d/95-no-proxy.conf",
	nodeproxy.KeyProfile:    "/etc/profile.d/zz-proxy.sh",
	nodeproxy.KeyPrepare:    "/etc/node-proxy/prepare.sh",
}

// TestTheProxyReachesServicesAndNotKubeadm checks control planes and workers. kubeadm must not get the proxy variables,
// because it copies them from its environment into static pods.
func TestTheProxyReachesServicesAndNotKubeadm(t *testing.T) {
	g := NewWithT(t)
	with := maps.Clone(needed)
	with["PROXY_EXCEPTIONS"] = optional["PROXY_EXCEPTIONS"]

	objects := render(t, "proxy", with)

	g.Expect(find[*infrav1.VCDCluster](objects, "demo").Spec.Proxy).To(Equal(infrav1.ProxySpec{
		HTTPProxy:  needed["HTTP_PROXY_URL"],
		HTTPSProxy: needed["HTTP_PROXY_URL"],
		NoProxy:    []string{".corp.example.com", "10.0.0.0/8"},
	}))
	for name, config := range map[string]bootstrapv1.KubeadmConfigSpec{
		"control plane": find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec,
		"workers":       find[*bootstrapv1.KubeadmConfigTemplate](objects, "demo-md-0").Spec.Template.Spec,
	} {
		paths := map[string]string{}
		for _, file := range config.Files {
			g.Expect(file.Content).To(BeEmpty(), "what is not of a Secret cannot follow the VCDCluster")
			if file.ContentFrom.Secret.Name == "demo-proxy-settings" {
				paths[file.ContentFrom.Secret.Key] = file.Path
			}
			g.Expect(file.Path).NotTo(HavePrefix("/etc/environment"), "a kubeadm in any shell would get it")
		}
		g.Expect(paths).To(Equal(proxyPaths), name)
		g.Expect(config.PreKubeadmCommands[:3]).To(Equal([]string{
			"systemctl daemon-reload", "systemctl try-restart containerd", "/etc/node-proxy/prepare.sh",
		}), name)
		for _, command := range append(config.PreKubeadmCommands, config.PostKubeadmCommands...) {
			g.Expect(strings.ToLower(command)).NotTo(ContainSubstring("_proxy"), name)
		}
	}
}

func TestBGPHasAPeerWithAPasswordThatMayBeEmpty(t *testing.T) {
	for password, variables := range map[string]map[string]string{
		"":       needed,
		"s3cret": {"BGP_PEER_PASSWORD_B64": "czNjcmV0", "BGP_PEER_MULTIHOP": "true"},
	} {
		t.Run("password "+password, func(t *testing.T) {
			g := NewWithT(t)
			with := maps.Clone(needed)
			maps.Copy(with, variables)

			objects := render(t, "bgp", with)

			bgp := find[*infrav1.VCDCluster](objects, "demo").Spec.ControlPlaneLoadBalancer.KubeVIP.BGP
			g.Expect(bgp.ASNumber).To(BeEquivalentTo(65001))
			g.Expect(bgp.RouterInterface).To(Equal("ens192"))
			g.Expect(bgp.Peers).To(HaveLen(1))
			g.Expect(bgp.Peers[0].Address).To(Equal("192.168.100.1"))
			g.Expect(bgp.Peers[0].MultiHop).To(HaveValue(Equal(password != "")))
			secret := find[*corev1.Secret](objects, bgp.Peers[0].PasswordSecretRef.Name)
			g.Expect(secret.Data).To(HaveKey(infrav1.SecretPassword))
			g.Expect(string(secret.Data[infrav1.SecretPassword])).To(Equal(password))
			g.Expect(secret.Labels).To(HaveKey("clusterctl.cluster.x-k8s.io/move"))
		})
	}
}

func TestDualStackHasAnAddressOfEachFamilyEverywhere(t *testing.T) {
	g := NewWithT(t)

	objects := render(t, "dual-stack", needed)

	network := find[*clusterv1.Cluster](objects, "demo").Spec.ClusterNetwork
	g.Expect(network.Pods.CIDRBlocks).To(HaveExactElements("100.96.0.0/11", "fd6a:100:96::/48"))
	g.Expect(network.Services.CIDRBlocks).To(HaveExactElements("100.64.0.0/13", "fd6a:100:64::/112"))
	cluster := find[*infrav1.VCDCluster](objects, "demo").Spec
	g.Expect(cluster.ControlPlaneEndpoint.Host).To(Equal("192.168.100.200"))
	second := cluster.ControlPlaneLoadBalancer.KubeVIP.SecondaryAddress
	g.Expect(second).To(Equal(needed["CONTROL_PLANE_ENDPOINT_IPV6"]))
	control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec.KubeadmConfigSpec
	g.Expect(control.ClusterConfiguration.APIServer.CertSANs).To(Equal([]string{second}), "kubeadm knows the host alone")
	for _, name := range []string{"demo-control-plane", "demo-md-0"} {
		nics := find[*infrav1.VCDMachineTemplate](objects, name).Spec.Template.Spec.Networks
		g.Expect(nics).To(HaveLen(1))
		g.Expect(nics[0].AddressSource).To(Equal(infrav1.AddressIPAM))
		g.Expect(nics[0].PoolRefs).To(HaveExactElements(HaveField("Name", "nodes"), HaveField("Name", "nodes-v6")))
	}
}

func TestDevelopmentIsOneUntaintedNode(t *testing.T) {
	g := NewWithT(t)

	objects := render(t, "development", needed)

	control := find[*controlplanev1.KubeadmControlPlane](objects, "demo-control-plane").Spec
	g.Expect(control.Replicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(control.KubeadmConfigSpec.InitConfiguration.NodeRegistration.Taints).To(HaveValue(BeEmpty()))
	g.Expect(control.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.Taints).To(HaveValue(BeEmpty()))
	g.Expect(find[*clusterv1.MachineDeployment](objects, "demo-md-0")).To(BeNil())
}

func nameOf(flavor string) string {
	if flavor == "" {
		return "default"
	}
	return flavor
}

func read(t *testing.T, flavor string) []byte {
	t.Helper()
	name := yamlprocessor.NewSimpleProcessor().GetTemplateName("", flavor)
	data, err := os.ReadFile(name)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

// render substitutes variables as clusterctl does and decodes the result. Unknown fields are errors.
func render(t *testing.T, flavor string, variables map[string]string) []client.Object {
	t.Helper()
	g := NewWithT(t)
	data, err := yamlprocessor.NewSimpleProcessor().Process(read(t, flavor), func(name string) (string, error) {
		if value, ok := variables[name]; ok {
			return value, nil
		}
		return "", errors.New("not set")
	})
	g.Expect(err).NotTo(HaveOccurred())

	decoder := strictDecoder(t)
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	defer func() { g.Expect(documents.Close()).To(Succeed()) }()
	var objects []client.Object
	buffer := make([]byte, len(data))
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred())
		object, _, err := decoder.Decode(buffer[:n], nil, nil)
		g.Expect(err).NotTo(HaveOccurred(), string(buffer[:n]))
		objects = append(objects, object.(client.Object))
	}
}

func strictDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
		infrav1.AddToScheme,
	} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// find returns the object of a type with the given name, or nil if it does not exist.
func find[T client.Object](objects []client.Object, name string) T {
	for _, object := range objects {
		if o, ok := object.(T); ok && o.GetName() == name {
			return o
		}
	}
	var none T
	return none
}
