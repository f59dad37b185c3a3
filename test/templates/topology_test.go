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

// newTopology creates the Cluster as a user does.
func newTopology(ctx context.Context, t *testing.T, w *framework.ManagementCluster) *topology {
	t.Helper()
	g := NewWithT(t)
	publish(t, w, required)
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

// set sets variables of the Cluster to JSON values. The value null removes a variable.
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

// A rendering contains the objects that the topology controller created, in JSON: those whose changes replace machines,
// and the VCDCluster.
type rendering struct{ ControlPlane, Workers, Cluster string }

// rendered waits until the topology controller has reconciled the Cluster, and returns the result.
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

// workerConfig returns the current bootstrap configuration of workers.
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

// A variableChange sets variables of the ClusterClass, and lists the objects that must change.
type variableChange struct {
	name                           string
	values                         map[string]string
	controlPlane, workers, cluster bool
}

// variableChanges returns changes in order. Each starts from the result of the previous one.
func variableChanges() []variableChange {
	image := func(template string) string {
		return fmt.Sprintf(`{"catalog": %q, "template": %q}`, required["VCD_CATALOG"], template)
	}
	return []variableChange{
		{"the machines of the control plane", map[string]string{"controlPlaneMachine": `{"sizingPolicy": "large"}`}, true, false, false},
		{
			"the machines of workers",
			map[string]string{
				"workerMachine": `{"diskSize": "40Gi", "storageProfile": "fast", "networks": [{}, {"name": "storage", "addressSource": "DHCP"}]}`,
			},
			false,
			true,
			false,
		},
		{"the image", map[string]string{"image": image("debian-12-kube-VERSION")}, true, true, false},
		{
			"an image selector",
			map[string]string{
				"image": fmt.Sprintf(`{"catalog": %q, "templateSelector": {"namePattern": "debian-12-kube-v{kubernetesVersion}*"}}`,
					required["VCD_CATALOG"]),
			},
			true,
			true,
			false,
		},
		{"SSH keys", map[string]string{"sshAuthorizedKeys": `["ssh-ed25519 AAAA me"]`}, true, true, false},
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
		{"the policy for orphaned disks", map[string]string{"orphanedDiskPolicy": `"Delete"`}, false, false, true},
		{"the vApp", map[string]string{"vApp": `{"name": "demo-vapp"}`}, false, false, true},
		{"the image repository of Kubernetes", map[string]string{"imageRepository": `"registry.example.com/k8s"`}, true, false, false},
		{
			"an external cloud controller manager",
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
			"an equivalent value",
			map[string]string{
				"controlPlaneEndpoint": `{"port": 6443, "host": "api.example.com"}`,
			},
			false,
			false,
			false,
		},
	}
}

// testVariables changes each variable, and compares the results of the topology controller. Unaffected parts must keep
// their templates, so that no machine is replaced.
func testVariables(ctx context.Context, t *testing.T, w *framework.ManagementCluster) {
	t.Helper()
	p := newTopology(ctx, t, w)
	before := p.rendered()
	p.Expect(before.Cluster).To(And(ContainSubstring(`"org":"acme"`), ContainSubstring(`"ovdcNetwork":"nodes"`),
		ContainSubstring(`"host":"192.168.100.200"`), Not(ContainSubstring("replaced-by-variable"))))
	p.Expect(before.ControlPlane).To(And(ContainSubstring("demo-kube-vip"), ContainSubstring(`"value":"external"`)))
	p.expectNoRollout(before)
	for _, change := range variableChanges() {
		t.Log(change.name)
		p.Expect(p.set(change.values)).To(Succeed(), change.name)
		after := p.rendered()
		changed := variableChange{
			change.name,
			change.values,
			after.ControlPlane != before.ControlPlane,
			after.Workers != before.Workers,
			after.Cluster != before.Cluster,
		}
		p.Expect(changed).To(Equal(change))
		if change.name == "another proxy" {
			version := nodeproxy.Version("http://proxy:3128", "", []string{".corp", "a"})
			p.Expect(after.ControlPlane).To(And(ContainSubstring("demo-proxy-settings"),
				ContainSubstring("containerd-"+version+".conf")), "a key that the Secret has only with this proxy")
		}
		if change.name == "Ignition" {
			for _, rendered := range []string{after.ControlPlane, p.workerConfig()} {
				p.Expect(rendered).To(And(ContainSubstring(`"format":"ignition"`), ContainSubstring("kubeadm.service.d"),
					ContainSubstring("/etc/vcd/metadata.env"), ContainSubstring(`"value":"$PROVIDER_ID"`),
					ContainSubstring(`"name":"$LOCAL_HOSTNAME"`), ContainSubstring(`"name":"core"`),
					Not(ContainSubstring("cloud-final")), Not(ContainSubstring("{{"))))
			}
		}
		before = after
	}
	p.expectNoRollout(before)
}

// expectNoRollout triggers reconciles of the topology, and expects no change. Defaults of the API server and writes of
// controllers must not count as a difference.
func (p *topology) expectNoRollout(before rendering) {
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
	p.Expect(p.templates()).To(Equal(templates), "no template is recreated")
}

// templates returns the sorted names of the machine and bootstrap templates of the cluster.
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

// testInvalidVariables checks that admission rejects a Cluster with invalid variables.
func testInvalidVariables(ctx context.Context, t *testing.T, w *framework.ManagementCluster) {
	t.Helper()
	publish(t, w, required)
	manifests, err := generate(ctx, w, "topology")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, bad := range map[string]struct{ old, new, message string }{
		"a proxy without a scheme": {
			old:     "    - name: image\n",
			new:     "    - name: proxy\n      value: {httpProxy: 'proxy:3128'}\n    - name: image\n",
			message: "variables[proxy].value.httpProxy",
		},
		"an unknown endpoint type": {old: "type: KubeVIP", new: "type: HAProxy", message: "variables[controlPlaneLoadBalancer].value.type"},
		"a managed cloud controller manager without an identity": {
			old:     "value:\n        identityRef:\n          name: demo-ccm\n        mode: Managed",
			new:     "value:\n        mode: Managed",
			message: "requires identityRef",
		},
		"a site without https": {old: "ovdcNetwork: nodes\n        site: https://vcd", new: "ovdcNetwork: nodes\n        site: vcd", message: "variables[vcd].value.site"},
		"an unknown variable":  {old: "name: image\n", new: "name: picture\n", message: "picture"},
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
