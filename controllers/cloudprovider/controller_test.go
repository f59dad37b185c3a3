// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

func TestTheCloudProviderIsInstalled(t *testing.T) {
	w := newCCMEnv(t)
	w.changeCAPICluster(func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil })

	w.Expect(w.pass()).To(And(HaveField("Reason", infrav1.WaitingForControlPlaneReason),
		HaveField("Status", metav1.ConditionFalse)))
	w.Expect(w.capiCluster().Labels).To(HaveKeyWithValue(infrav1.CloudProviderLabel, controllertest.ClusterName))
	w.Expect(w.set("-cloud-provider")).To(BeNil(), "the workload cluster has not been inspected yet")

	w.changeCAPICluster(func(c *clusterv1.Cluster) {
		c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: ptr.To[int32](3)}
	})
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	set := w.set("-cloud-provider")
	crs := &addonsv1.ClusterResourceSet{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(set), crs)).To(Succeed())
	w.Expect(set.Type).To(Equal(addonsv1.ClusterResourceSetSecretType))
	w.Expect(crs.Spec).To(Equal(addonsv1.ClusterResourceSetSpec{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{infrav1.CloudProviderLabel: controllertest.ClusterName}},
		Resources:       []addonsv1.ResourceRef{{Kind: "Secret", Name: controllertest.ClusterName + "-cloud-provider"}},
		Strategy:        "Reconcile",
	}))
	w.Expect(metav1.IsControlledBy(set, w.vcdClusterNow())).To(BeTrue())
	w.Expect(metav1.IsControlledBy(crs, w.vcdClusterNow())).To(BeTrue())

	w.apply()
	w.Expect(w.pass()).To(And(HaveField("Reason", infrav1.CloudProviderUnavailableReason),
		HaveField("Message", ContainSubstring("kube-system/vmware-cloud-director-ccm"))))
	w.Expect(w.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Image).To(Equal(ccmImage))

	w.runs()
	w.ahead += addon.StartPoll
	w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", infrav1.ReadyReason)))

	before := w.set("-cloud-provider").ResourceVersion
	w.ahead += time.Hour
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.set("-cloud-provider").ResourceVersion).To(Equal(before), "correct objects are not touched")
	w.reconciler = w.newReconciler()
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.set("-cloud-provider").ResourceVersion).To(Equal(before), "even after a restart of the manager")
}

func TestPodsOfOlderVersionsDoNotMakeTheCloudProviderReady(t *testing.T) {
	late := appsv1.DeploymentCondition{
		Type:    appsv1.DeploymentProgressing,
		Status:  corev1.ConditionFalse,
		Message: "it has timed out.",
	}
	tests := []struct {
		name   string
		status appsv1.DeploymentStatus
		want   string
		ready  metav1.ConditionStatus
	}{
		{
			name:   "no new pod yet",
			status: appsv1.DeploymentStatus{Replicas: 2, AvailableReplicas: 2},
			want:   "rollout: 0 of 2 replicas updated, 2 available, 2 old",
			ready:  metav1.ConditionFalse,
		},
		{
			name:   "one new pod that does not start",
			status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1},
			want:   "1 of 2 replicas updated",
			ready:  metav1.ConditionFalse,
		},
		{
			name: "a new pod that fails permanently",
			status: appsv1.DeploymentStatus{
				Replicas:          2,
				UpdatedReplicas:   1,
				AvailableReplicas: 1,
				Conditions:        []appsv1.DeploymentCondition{late},
			},
			want:  "is not available (rollout: 1 of 2 replicas updated, 1 available, 1 old): it has timed out",
			ready: metav1.ConditionFalse,
		},
		{
			name:   "one of the new pods works",
			status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1},
			ready:  metav1.ConditionTrue,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newCCMEnv(t)
			w.changeCAPICluster(func(c *clusterv1.Cluster) {
				c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: ptr.To[int32](3)}
			})
			w.pass()
			w.apply()
			w.setRollout(tt.status)

			got := w.pass()

			w.Expect(got.Status).To(Equal(tt.ready), got.Message)
			w.Expect(got.Message).To(ContainSubstring(tt.want))
		})
	}
}

func TestTheCloudProviderIsConfiguredForItsCluster(t *testing.T) {
	w := newCCMEnv(t)
	w.changeCAPICluster(func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.example.com", Port: 8443}
	})
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.LoadBalancer = infrav1.LoadBalancerSpec{
			ArmMode:            infrav1.ArmModeOneArm,
			OneArm:             infrav1.OneArmSpec{InternalRange: infrav1.AddressRange{StartIP: "10.9.0.1", EndIP: "10.9.0.9"}},
			VIPSubnet:          "10.0.0.0/24",
			ServiceEngineGroup: "seg",
		}
	})

	w.installed()

	config := &corev1.ConfigMap{}
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: "kube-system", Name: "vcloud-ccm-configmap"},
		config)).To(Succeed())
	for _, line := range []string{
		"clusterid: infra-1",
		"host: " + w.Sim.URL(),
		"org: acme",
		"vdc: " + vdcURN(w.Env),
		"network: nodes",
		"engineGroup: seg",
		"vipSubnet: 10.0.0.0/24",
		"startIP: 10.9.0.1",
		"endIP: 10.9.0.9",
		"vAppName: " + controllertest.ClusterName,
		"BEGIN CERTIFICATE",
	} {
		w.Expect(config.Data["vcloud-ccm-config.yaml"]).To(ContainSubstring(line))
	}
	credentials := &corev1.Secret{}
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: "kube-system", Name: addons.ManagedCredentialsName},
		credentials)).To(Succeed())
	w.Expect(credentials.Data).To(Equal(map[string][]byte{
		"username": []byte("capvcd"),
		"password": []byte("password"),
	}))
	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Env).To(ContainElements(
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example.com"},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: "8443"},
	), "kube-proxy waits for the addresses that the pod assigns to nodes")
	hash := w.deployment().Spec.Template.Annotations

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.VIPSubnet = "10.0.1.0/24" })
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.Expect(w.deployment().Spec.Template.Annotations).NotTo(Equal(hash), "another configuration needs new pods")
}

func TestTheCloudProviderUsesTheClusterProxyIfConfigured(t *testing.T) {
	const proxy = "http://user:secret@proxy.example.com:3128"
	w := newCCMEnv(t)
	w.changeCAPICluster(func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.example.com", Port: 6443}
	})
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.Proxy = infrav1.ProxySpec{HTTPSProxy: proxy, NoProxy: []string{".corp.example.com"}}
	})
	w.installed()
	variables := []string{"HTTPS_PROXY", "NO_PROXY"}
	direct := w.deployment().Spec.Template
	w.Expect(direct.Spec.Containers[0].Env).NotTo(ContainElement(HaveField("Name", BeElementOf(variables))),
		"nodes reach the site without the proxy")

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.Proxy.Site = infrav1.SiteByProxy })
	w.Expect(w.pass().Message).To(Equal("Waiting for NodeProxyReady"))
	w.writeNodeProxy("localhost", "192.168.4.0/24", "fd00:4::/64")
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()

	template := w.deployment().Spec.Template
	w.Expect(template.Annotations).NotTo(Equal(direct.Annotations), "another proxy needs new pods")
	for _, name := range variables {
		w.Expect(template.Spec.Containers[0].Env).To(ContainElement(And(HaveField("Name", name),
			HaveField("ValueFrom.SecretKeyRef.Name", addons.ProxyName))))
	}
	w.Expect(template.String()).NotTo(ContainSubstring("secret@"))
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "kube-system", Name: addons.ProxyName}
	w.Expect(w.Workload.Get(w.Ctx, key, secret)).To(Succeed())
	w.Expect(string(secret.Data["HTTPS_PROXY"])).To(Equal(proxy))
	exceptions := strings.Split(string(secret.Data["NO_PROXY"]), ",")
	w.Expect(exceptions).To(ContainElements("api.example.com", "10.96.0.0/12", ".corp.example.com"))
	w.Expect(exceptions).To(ContainElements("192.168.4.0/24", "fd00:4::/64"), "the node networks")
	site, err := url.Parse(w.Sim.URL())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(exceptions).NotTo(ContainElement(site.Hostname()))

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.Proxy.HTTPSProxy = "http://other.example.com:3128" })
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.Expect(w.deployment().Spec.Template.Annotations).NotTo(Equal(template.Annotations))

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.Proxy.CredentialsSecretRef.Name = "proxy" })
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.Expect(w.Workload.Get(w.Ctx, key, secret)).To(Succeed())
	w.Expect(string(secret.Data["HTTPS_PROXY"])).To(Equal("http://user:from-secret@proxy:3128"))

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.Proxy.Site = infrav1.SiteDirect })
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.pass()
	w.Expect(w.deployment().Spec.Template.Annotations).To(Equal(direct.Annotations))
	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Env).NotTo(
		ContainElement(HaveField("Name", BeElementOf(variables))))
	w.Expect(apierrors.IsNotFound(w.Workload.Get(w.Ctx, key, secret))).To(BeTrue(), "no password remains")
}

func TestTheEndpointDefaultsToThatOfTheInfrastructureCluster(t *testing.T) {
	w := newCCMEnv(t)
	w.changeCAPICluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} })
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.corp.example.com", Port: 8443}
		c.Spec.Proxy = infrav1.ProxySpec{HTTPSProxy: "http://proxy.example.com:3128", Site: infrav1.SiteByProxy}
	})
	w.writeNodeProxy("192.168.4.0/24")

	w.installed()

	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Env).To(ContainElements(
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "api.corp.example.com"},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: "8443"},
	))
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "kube-system", Name: addons.ProxyName}
	w.Expect(w.Workload.Get(w.Ctx, key, secret)).To(Succeed())
	w.Expect(strings.Split(string(secret.Data["NO_PROXY"]), ",")).To(ContainElement("api.corp.example.com"),
		"the API server is reached without the proxy")
}

func TestForbiddenCredentialsAreNotCopiedToAWorkloadCluster(t *testing.T) {
	tests := []struct {
		name, reason string
		change       func(*ccmEnv)
	}{
		{
			name:   "an identity is not shared unless it says so",
			reason: infrav1.IdentityNotSharedReason,
			change: func(w *ccmEnv) {
				w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.ShareWithClusters = nil })
			},
		},
		{
			name:   "nor is an identity that denies it",
			reason: infrav1.IdentityNotSharedReason,
			change: func(w *ccmEnv) {
				w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.ShareWithClusters = ptr.To(false) })
			},
		},
		{
			name:   "a cluster-scoped identity is not shared",
			reason: infrav1.IdentityNotShareableReason,
			change: func(w *ccmEnv) {
				wide := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
				wide.Spec.Site = w.Sim.URL()
				wide.Spec.SecretRef.Name = "wide"
				wide.Spec.Orgs = []string{"*"}
				wide.Spec.ShareWithClusters = ptr.To(true)
				wide.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{List: []string{controllertest.Namespace}}
				w.Expect(w.Client.Create(w.Ctx, wide)).To(Succeed())
				w.changeCluster(func(c *infrav1.VCDCluster) {
					c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "wide"}
				})
			},
		},
		{
			name:   "a system administrator is not allowed",
			reason: infrav1.IdentityNotShareableReason,
			change: func(w *ccmEnv) { w.changeSecret("username", "System/administrator") },
		},
		{
			name:   "regardless of the spelling",
			reason: infrav1.IdentityNotShareableReason,
			change: func(w *ccmEnv) { w.changeSecret("username", "sYSTEM/administrator") },
		},
		{
			name:   "even with a token",
			reason: infrav1.IdentityNotShareableReason,
			change: func(w *ccmEnv) {
				w.changeSecret("apiToken", "secret-token")
				w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.Org = "System" })
			},
		},
		{
			name:   "a service account of the cluster has a single user",
			reason: infrav1.IdentityNotShareableReason,
			change: func(w *ccmEnv) {
				w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.Type = infrav1.CredentialServiceAccount })
			},
		},
		{
			name:   "credentials that VCD rejects are not copied",
			reason: infrav1.CredentialsRejectedReason,
			change: func(w *ccmEnv) { w.changeSecret("password", "wrong") },
		},
		{
			name:   "credentials of another site are not copied",
			reason: infrav1.SiteNotAllowedReason,
			change: func(w *ccmEnv) {
				w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.Site = "https://other.example.com" })
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newCCMEnv(t)
			tt.change(w)

			w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tt.reason)))

			w.Expect(w.set("-cloud-provider")).To(BeNil())
			w.Expect(w.set("-cloud-provider-seed")).To(BeNil())
		})
	}
}

func TestNewCredentialsAreRolledOut(t *testing.T) {
	w := newCCMEnv(t)
	w.installed()
	pods := w.deployment().Spec.Template

	w.changeSecret("password", "wrong")
	w.Expect(w.pass().Reason).To(Equal(infrav1.CredentialsRejectedReason))
	w.Expect(string(w.set("-cloud-provider").Data["manifests.yaml"])).To(ContainSubstring("password: cGFzc3dvcmQ="),
		"working credentials are not replaced by broken ones")

	w.changeSecret("username", "admin")
	w.changeSecret("password", "password")
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
	credentials := &corev1.Secret{}
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: "kube-system", Name: addons.ManagedCredentialsName},
		credentials)).To(Succeed())
	w.Expect(string(credentials.Data["username"])).To(Equal("admin"))
	w.Expect(w.deployment().Spec.Template).To(Equal(pods), "files are reread, and no pod is replaced")
}

func TestAnAuthorityThatDoesNotMatchTheSiteIsNotRolledOut(t *testing.T) {
	w := newCCMEnv(t)
	w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.TLS.CABundle = string(w.Sim.CA()) })
	secret := w.Secret("tenant-credentials")
	delete(secret.Data, "ca.crt")
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	w.installed()
	manifests := w.set("-cloud-provider").Data["manifests.yaml"]
	other := httptest.NewTLSServer(nil)
	defer other.Close()

	w.changeIdentity(func(i *infrav1.VCDIdentity) {
		i.Spec.TLS.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}))
	})

	w.Expect(w.pass().Reason).To(Equal(infrav1.CertificateNotTrustedReason))
	w.Expect(w.set("-cloud-provider").Data["manifests.yaml"]).To(Equal(manifests))
}

func TestAnUpgradeIsRolledOutAndRemovesObsoleteObjects(t *testing.T) {
	w := newCCMEnv(t)
	w.installed()
	old := func(name, owner string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace:   "kube-system",
			Name:        name,
			Annotations: map[string]string{infrav1.CloudProviderOfAnnotation: owner},
		}}
	}
	w.Expect(w.Workload.Create(w.Ctx, old("of-an-old-release", "infra-1"))).To(Succeed())
	w.Expect(w.Workload.Create(w.Ctx, old("of-another", "infra-2"))).To(Succeed())
	set := w.set("-cloud-provider")
	inventory := strings.TrimSuffix(set.Annotations[infrav1.CloudProviderInventoryAnnotation], "]")
	for _, name := range []string{"of-an-old-release", "of-another"} {
		inventory += `,{"apiVersion":"v1","kind":"ConfigMap","namespace":"kube-system","name":"` + name + `"}`
	}
	set.Annotations[infrav1.CloudProviderInventoryAnnotation] = inventory + "]"
	w.Expect(w.Client.Update(w.Ctx, set)).To(Succeed())

	w.reconciler = w.newReconciler()
	w.reconciler.Image = "registry.example.com/cloud-provider-for-cloud-director:v2.1.0"
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.pass()

	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v2.1.0"))
	w.Expect(apierrors.IsNotFound(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(old("of-an-old-release", "")),
		&corev1.ConfigMap{}))).To(BeTrue())
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(old("of-another", "")),
		&corev1.ConfigMap{})).To(Succeed())
	w.Expect(w.set("-cloud-provider").Annotations).NotTo(HaveKey(infrav1.CloudProviderDroppedAnnotation))
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
}

func TestDeletedAndChangedObjectsAreRestored(t *testing.T) {
	tests := []struct {
		name   string
		change func(*ccmEnv)
	}{
		{
			"a deleted Deployment",
			func(w *ccmEnv) { w.Expect(w.Workload.Delete(w.Ctx, w.deployment())).To(Succeed()) },
		},
		{
			"a Deployment scaled to zero",
			func(w *ccmEnv) {
				d := w.deployment()
				d.Spec.Replicas = ptr.To[int32](0)
				w.Expect(w.Workload.Update(w.Ctx, d)).To(Succeed())
			},
		},
		{
			"revoked permissions",
			func(w *ccmEnv) {
				role := &unstructured.Unstructured{}
				role.SetAPIVersion("rbac.authorization.k8s.io/v1")
				role.SetKind("ClusterRole")
				role.SetName("system:cloud-controller-manager")
				w.Expect(w.Workload.Delete(w.Ctx, role)).To(Succeed())
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newCCMEnv(t)
			w.installed()
			before := w.set("-cloud-provider").Data["manifests.yaml"]
			tt.change(w)

			w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue), "it is not checked all the time")
			w.ahead += 6 * time.Minute
			w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
			w.Expect(w.set("-cloud-provider").Data["manifests.yaml"]).NotTo(Equal(before),
				"Cluster API applies the changed set")

			w.apply()
			w.runs()
			w.ahead += addon.ApplyPoll
			w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
			w.Expect(w.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		})
	}
}

func TestAWorkloadClusterThatDoesNotAnswerIsUnknown(t *testing.T) {
	w := newCCMEnv(t)
	answers := w.Workload
	w.Workload = nil
	w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionUnknown),
		HaveField("Reason", infrav1.WorkloadClusterUnreachableReason)))
	result, err := w.reconciler.Reconcile(w.Ctx, w.vcdClusterNow())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically("<", 20*time.Second), "Nodes wait for it")
	w.Expect(w.set("-cloud-provider")).To(BeNil())

	w.Workload = answers
	w.installed()
}

func TestTheCloudProviderIsRemovedOrKeptAsConfigured(t *testing.T) {
	for mode, stays := range map[infrav1.CloudProviderMode]bool{
		infrav1.CloudProviderExternal: true,
		infrav1.CloudProviderNone:     false,
	} {
		t.Run(string(mode), func(t *testing.T) {
			w := newCCMEnv(t)
			w.installed()
			foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "other"}}
			w.Expect(w.Workload.Create(w.Ctx, foreign)).To(Succeed())
			w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.Mode = mode })

			w.Expect(w.pass()).To(Equal(metav1.Condition{}), "no workload must be ready")

			list := &addonsv1.ClusterResourceSetList{}
			w.Expect(w.Client.List(w.Ctx, list)).To(Succeed())
			w.Expect(list.Items).To(BeEmpty())
			w.Expect(w.set("-cloud-provider")).To(BeNil())
			w.Expect(w.capiCluster().Labels).NotTo(HaveKey(infrav1.CloudProviderLabel))
			deployments := &appsv1.DeploymentList{}
			all := &corev1.ConfigMapList{}
			w.Expect(w.Workload.List(w.Ctx, deployments)).To(Succeed())
			w.Expect(w.Workload.List(w.Ctx, all)).To(Succeed())
			w.Expect(deployments.Items).To(HaveLen(map[bool]int{true: 1}[stays]))
			w.Expect(all.Items).To(ContainElement(HaveField("Name", "other")))
		})
	}
}

// TestForeignObjectsWithTheSameNamesAreNotTouched creates the manager's objects as a user before the manager does, and
// then removes the cloud provider.
func TestForeignObjectsWithTheSameNamesAreNotTouched(t *testing.T) {
	name := controllertest.ClusterName + "-cloud-provider"
	for _, tc := range []struct {
		name    string
		foreign client.Object
	}{
		{
			name:    "a ClusterResourceSet",
			foreign: &addonsv1.ClusterResourceSet{ObjectMeta: controllertest.Meta(name)},
		},
		{
			name:    "a Secret",
			foreign: &corev1.Secret{ObjectMeta: controllertest.Meta(name)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newCCMEnv(t, tc.foreign)

			condition := w.pass()

			w.Expect(condition.Reason).To(Equal(infrav1.NameConflictReason))
			w.Expect(condition.Message).To(ContainSubstring(name + " exists but does not belong to this VCDCluster"))
			w.changeCAPICluster(func(c *clusterv1.Cluster) {
				metav1.SetMetaDataLabel(&c.ObjectMeta, infrav1.CloudProviderLabel, c.Name)
			})
			w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.Mode = infrav1.CloudProviderNone })
			w.pass()
			found, ok := tc.foreign.DeepCopyObject().(client.Object)
			w.Expect(ok).To(BeTrue())
			w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(found), found)).To(Succeed())
		})
	}
}

func TestAServiceAccountTokenIsSeededOnce(t *testing.T) {
	ccm := &infrav1.VCDIdentity{ObjectMeta: controllertest.Meta("ccm")}
	ccm.Spec.SecretRef.Name = "ccm-token"
	ccm.Spec.Type = infrav1.CredentialServiceAccount
	ccm.Spec.ShareWithClusters = ptr.To(true)
	token := &corev1.Secret{
		ObjectMeta: controllertest.Meta("ccm-token"),
		Data:       map[string][]byte{"apiToken": []byte("first-token")},
	}
	w := newCCMEnv(t, token)
	ccm.Spec.Site = w.Sim.URL()
	w.Expect(w.Client.Create(w.Ctx, ccm)).To(Succeed())
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "ccm"}
	})
	logins := func() int {
		n := 0
		for _, r := range w.Sim.Requests() {
			if strings.Contains(r.Path, "/oauth/") {
				n++
			}
		}
		return n
	}

	w.installed()

	w.Expect(logins()).To(BeZero(), "each use of the token replaces it, so only the cloud controller manager uses it")
	seed := w.set("-cloud-provider-seed")
	crs := &addonsv1.ClusterResourceSet{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(seed), crs)).To(Succeed())
	w.Expect(crs.Spec.Strategy).To(Equal("ApplyOnce"))
	w.Expect(string(seed.Data["manifests.yaml"])).To(And(ContainSubstring("name: vcloud-service-account"),
		ContainSubstring("Zmlyc3QtdG9rZW4=")))
	reconciled := string(w.set("-cloud-provider").Data["manifests.yaml"])
	w.Expect(reconciled).NotTo(ContainSubstring("Zmlyc3QtdG9rZW4="),
		"no reconciled set contains objects that the cloud controller manager writes")
	w.Expect(reconciled).To(ContainSubstring("serviceAccountSecret: vcloud-service-account"))
}

func TestAPausedClusterIsLeftAlone(t *testing.T) {
	w := newCCMEnv(t)
	w.changeCAPICluster(func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })

	w.pass()

	w.Expect(w.set("-cloud-provider")).To(BeNil())
	w.Expect(w.capiCluster().Labels).NotTo(HaveKey(infrav1.CloudProviderLabel))
}
