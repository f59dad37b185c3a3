// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
)

// A topology is a Cluster of ClusterClass quick-start, reconciled by Cluster API's topology controller.
type topology struct {
	*WithT

	ctx    context.Context //nolint:containedctx // that of the test
	client client.Client
}

// newTopology creates the Cluster as users do.
func newTopology(ctx context.Context, t *testing.T, w *framework.ManagementCluster) *topology {
	t.Helper()
	g := NewWithT(t)
	publish(t, w, needed)
	manifests, err := generate(ctx, w, "topology")
	g.Expect(err).NotTo(HaveOccurred())
	out, err := w.Kubectl(ctx, bytes.NewReader(manifests), "apply", "--validate=strict", "-f", "-")
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c, err := client.New(w.RESTConfig(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return &topology{WithT: g, ctx: ctx, client: c}
}

func (p *topology) cluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	p.Expect(p.client.Get(p.ctx, client.ObjectKey{Namespace: "default", Name: "demo"}, c)).To(Succeed())
	return c
}

// set changes variables of the Cluster. The value null removes a variable.
func (p *topology) set(values map[string]string) error {
	c := p.cluster()
	before := c.DeepCopy()
	for name, value := range values {
		variables := slices.DeleteFunc(c.Spec.Topology.Variables,
			func(v clusterv1.ClusterVariable) bool { return v.Name == name })
		if value != "null" {
			variables = append(variables,
				clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(value)}})
		}
		c.Spec.Topology.Variables = variables
	}
	return p.client.Patch(p.ctx, c, client.MergeFrom(before))
}

// A rendering has the objects that the topology controller created: those whose change replaces machines, and the
// VCDCluster.
type rendering struct{ ControlPlane, Workers, Cluster string }

// rendered waits until the topology matches the Cluster, and returns the result.
func (p *topology) rendered() rendering {
	p.Eventually(func() error {
		c := p.cluster()
		reconciled := conditions.Get(c, clusterv1.ClusterTopologyReconciledCondition)
		switch {
		case reconciled == nil || reconciled.ObservedGeneration < c.Generation:
			return errors.New("not reconciled yet")
		case reconciled.Status != "True":
			return errors.New(reconciled.Message)
		}
		return nil
	}, testtime.Patience, "100ms").Should(Succeed())
	c := p.cluster()
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: c.Namespace, Name: name} }
	infra := &infrav1.VCDCluster{}
	control := &controlplanev1.KubeadmControlPlane{}
	p.Expect(p.client.Get(p.ctx, key(c.Spec.InfrastructureRef.Name), infra)).To(Succeed())
	p.Expect(p.client.Get(p.ctx, key(c.Spec.ControlPlaneRef.Name), control)).To(Succeed())
	deployments := &clusterv1.MachineDeploymentList{}
	p.Expect(p.client.List(p.ctx, deployments, client.InNamespace(c.Namespace))).To(Succeed())
	p.Expect(deployments.Items).To(HaveLen(1))
	infra.Spec.InfraID = ""
	return rendering{
		ControlPlane: text(p, control.Spec.KubeadmConfigSpec) + text(p, control.Spec.MachineTemplate.Spec.InfrastructureRef),
		Workers:      text(p, deployments.Items[0].Spec.Template.Spec),
		Cluster:      text(p, infra.Spec),
	}
}

// workerConfig returns the configuration with which workers are created.
func (p *topology) workerConfig() string {
	deployments := &clusterv1.MachineDeploymentList{}
	p.Expect(p.client.List(p.ctx, deployments, client.InNamespace("default"))).To(Succeed())
	p.Expect(deployments.Items).To(HaveLen(1))
	config := &bootstrapv1.KubeadmConfigTemplate{}
	key := client.ObjectKey{Namespace: "default", Name: deployments.Items[0].Spec.Template.Spec.Bootstrap.ConfigRef.Name}
	p.Expect(p.client.Get(p.ctx, key, config)).To(Succeed())
	return text(p, config.Spec.Template.Spec)
}

func text(p *topology, value any) string {
	raw, err := json.Marshal(value)
	p.Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// A variableChange is a new value of variables of the ClusterClass, and the objects that it may change.
type variableChange struct {
	name                           string
	values                         map[string]string
	controlPlane, workers, cluster bool
}

// variableChanges returns changes in order. Each starts from the result of the previous one.
func variableChanges() []variableChange {
	image := func(template string) string {
		return fmt.Sprintf(`{"catalog": %q, "template": %q}`, needed["VCD_CATALOG"], template)
	}
	return []variableChange{
		{"a machine of control planes", map[string]string{"controlPlaneMachine": `{"sizingPolicy": "large"}`}, true, false, false},
		{
			"a machine of workers",
			map[string]string{
				"workerMachine": `{"diskSize": "40Gi", "storageProfile": "fast", "networks": [{}, {"name": "storage", "addressSource": "DHCP"}]}`,
			},
			false,
			true,
			false,
		},
		{"the image", map[string]string{"image": image("debian-12-kube-VERSION")}, true, true, false},
		{
			"the selector of the image",
			map[string]string{
				"image": fmt.Sprintf(`{"catalog": %q, "templateSelector": {"namePattern": "debian-12-kube-v{kubernetesVersion}*"}}`,
					needed["VCD_CATALOG"]),
			},
			true,
			true,
			false,
		},
		{"keys", map[string]string{"sshAuthorizedKeys": `["ssh-ed25519 AAAA me"]`}, true, true, false},
		{"a proxy", map[string]string{"proxy": `{"httpProxy": "http://proxy:3128", "noProxy": [".corp"]}`}, true, true, true},
		{"another proxy", map[string]string{"proxy": `{"httpProxy": "http://proxy:3128", "noProxy": [".corp", "a"]}`}, true, true, true},
		{
			"pods without a proxy",
			map[string]string{
				"proxy": `{"httpProxy": "http://proxy:3128", "noProxy": [".corp", "a"], "pods": "None"}`,
			},
			false,
			false,
			true,
		},
		{"Ignition", map[string]string{"bootstrapFormat": `"ignition"`}, true, true, false},
		{"no proxy", map[string]string{"proxy": "null"}, true, true, true},
		{"load balancers", map[string]string{"loadBalancer": `{"vipSubnet": "10.0.0.0/24"}`}, false, false, true},
		{"disks", map[string]string{"orphanedDiskPolicy": `"Delete"`}, false, false, true},
		{"vApps", map[string]string{"vApp": `{"name": "demo-vapp"}`}, false, false, true},
		{"Kubernetes' own images", map[string]string{"imageRepository": `"registry.example.com/k8s"`}, true, false, false},
		{
			"another cloud controller manager",
			map[string]string{
				"cloudProvider": `{"mode": "External"}`,
				"loadBalancer":  "null",
			},
			false,
			false,
			true,
		},
		{"no cloud controller manager", map[string]string{"cloudProvider": `{"mode": "None"}`}, true, true, true},
		{
			"an endpoint of another type",
			map[string]string{
				"controlPlaneLoadBalancer": `{"type": "External"}`,
				"controlPlaneEndpoint":     `{"host": "api.example.com"}`,
			},
			true,
			false,
			true,
		},
		{
			"the same in other words",
			map[string]string{
				"controlPlaneEndpoint": `{"port": 6443, "host": "api.example.com"}`,
			},
			false,
			false,
			false,
		},
	}
}

// topologyIsExact changes each variable, and compares the results of the topology controller. Unaffected parts keep
// their templates, so that no machine is replaced.
func topologyIsExact(ctx context.Context, t *testing.T, w *framework.ManagementCluster) {
	t.Helper()
	p := newTopology(ctx, t, w)
	before := p.rendered()
	p.Expect(before.Cluster).To(And(ContainSubstring(`"org":"acme"`), ContainSubstring(`"ovdcNetwork":"nodes"`),
		ContainSubstring(`"host":"192.168.100.200"`), Not(ContainSubstring("replaced-by-variable"))))
	p.Expect(before.ControlPlane).To(And(ContainSubstring("demo-kube-vip"), ContainSubstring(`"value":"external"`)))
	p.quiet(before)
	for _, change := range variableChanges() {
		t.Log(change.name)
		p.Expect(p.set(change.values)).To(Succeed(), change.name)
		after := p.rendered()
		touched := variableChange{
			change.name,
			change.values,
			after.ControlPlane != before.ControlPlane,
			after.Workers != before.Workers,
			after.Cluster != before.Cluster,
		}
		p.Expect(touched).To(Equal(change))
		if change.name == "another proxy" {
			version := nodeproxy.Version("http://proxy:3128", "", []string{".corp", "a"})
			p.Expect(after.ControlPlane).To(And(ContainSubstring("demo-proxy-settings"),
				ContainSubstring("containerd-"+version+".conf")), "the key that the Secret has only with this proxy")
		}
		if change.name == "Ignition" {
			for _, made := range []string{after.ControlPlane, p.workerConfig()} {
				p.Expect(made).To(And(ContainSubstring(`"format":"ignition"`), ContainSubstring("kubeadm.service.d"),
					ContainSubstring("/etc/vcd/metadata.env"), ContainSubstring(`"value":"$PROVIDER_ID"`),
					ContainSubstring(`"name":"$LOCAL_HOSTNAME"`), ContainSubstring(`"name":"core"`),
					Not(ContainSubstring("cloud-final")), Not(ContainSubstring("{{"))))
			}
		}
		before = after
	}
	p.quiet(before)
}

// quiet makes the topology reconcile again, and expects no change: defaults of the API server and writes of controllers
// are no difference.
func (p *topology) quiet(before rendering) {
	templates := p.templates()
	for range 3 {
		c := p.cluster()
		patch := client.MergeFrom(c.DeepCopy())
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations["reconcile-at"] += "x"
		p.Expect(p.client.Patch(p.ctx, c, patch)).To(Succeed())
		p.Consistently(p.rendered, "1s", "200ms").Should(Equal(before))
	}
	p.Expect(p.templates()).To(Equal(templates), "no template is made anew")
}

// templates returns the names of the templates of the cluster's machines.
func (p *topology) templates() []string {
	var names []string
	for _, list := range []client.ObjectList{&infrav1.VCDMachineTemplateList{}, &bootstrapv1.KubeadmConfigTemplateList{}} {
		p.Expect(p.client.List(p.ctx, list, client.InNamespace("default"),
			client.MatchingLabels{clusterv1.ClusterNameLabel: "demo"})).To(Succeed())
		switch l := list.(type) {
		case *infrav1.VCDMachineTemplateList:
			for _, i := range l.Items {
				names = append(names, i.Name)
			}
		case *bootstrapv1.KubeadmConfigTemplateList:
			for _, i := range l.Items {
				names = append(names, i.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// badVariables checks that the admission of the Cluster refuses invalid variables.
func badVariables(ctx context.Context, t *testing.T, w *framework.ManagementCluster) {
	t.Helper()
	publish(t, w, needed)
	manifests, err := generate(ctx, w, "topology")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, bad := range map[string]struct{ old, new, message string }{
		"a proxy without scheme": {
			"    - name: image\n",
			"    - name: proxy\n      value: {httpProxy: 'proxy:3128'}\n    - name: image\n",
			"variables[proxy].value.httpProxy",
		},
		"an endpoint of no type": {"type: KubeVIP", "type: HAProxy", "variables[controlPlaneLoadBalancer].value.type"},
		"a managed cloud controller manager without an identity": {
			"value:\n        identityRef:\n          name: demo-ccm\n        mode: Managed",
			"value:\n        mode: Managed",
			"requires identityRef",
		},
		"a site without https": {"ovdcNetwork: nodes\n        site: https://vcd", "ovdcNetwork: nodes\n        site: vcd", "variables[vcd].value.site"},
		"an unknown variable":  {"name: image\n", "name: picture\n", "picture"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(string(manifests)).To(ContainSubstring(bad.old))
			changed := bytes.Replace(manifests, []byte(bad.old), []byte(bad.new), 1)

			_, err := dryRun(ctx, w, changed)

			g.Expect(err).To(MatchError(ContainSubstring(bad.message)))
		})
	}
}
