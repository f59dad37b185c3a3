// SPDX-License-Identifier: Apache-2.0

package vsphere_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
)

func TestCredentialsInASecret(t *testing.T) {
	for name, tt := range map[string]struct {
		data map[string]string
		host string
		want vsphere.Credentials
	}{
		"of the host": {
			data: map[string]string{
				"vc.username":    "u",
				"vc.password":    "p\n",
				"other.username": "x",
				"other.password": "y",
			},
			host: "VC",
			want: vsphere.Credentials{User: "u", Password: "p"},
		},
		"of an IPv6 address": {
			data: map[string]string{"server_1": "fd00::1", "username_1": "u", "password_1": "p"},
			host: "[fd00::1]",
			want: vsphere.Credentials{User: "u", Password: "p"},
		},
		"of a shared session": {
			data: map[string]string{"vc.vc-session-manager-url": "https://s", "vc.vc-session-manager-token": "t"},
			host: "vc",
			want: vsphere.Credentials{SharedSession: "https://s", SharedToken: "t"},
		},
		"of another host":    {data: map[string]string{"vc.username": "u", "vc.password": "p"}, host: "vc2", want: vsphere.Credentials{}},
		"without a password": {data: map[string]string{"vc.username": "u"}, host: "vc", want: vsphere.Credentials{}},
		"with other keys": {
			data: map[string]string{"vc.username": "u", "vc.password": "p", "note": "x"},
			host: "vc",
			want: vsphere.Credentials{User: "u", Password: "p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data := map[string][]byte{}
			for key, value := range tt.data {
				data[key] = []byte(value)
			}

			got, ok := vsphere.CredentialsIn(data, tt.host)

			g.Expect(got).To(Equal(tt.want))
			g.Expect(ok).To(Equal(tt.want != vsphere.Credentials{}))
		})
	}
}

func TestTheSecretThenTheDirectoryThenTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	now := time.Now()
	client := fake.NewClientset()
	s := &vsphere.CredentialSource{
		Host:      "vc",
		Secrets:   client.CoreV1(),
		Namespace: "kube-system",
		Secret:    "creds",
		Directory: dir,
		Now:       func() time.Time { return now },
	}
	user := func() string {
		c, _, err := s.Current(t.Context())
		if err != nil {
			return err.Error()
		}
		return c.User
	}
	write := func(name, content string) {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}

	g.Expect(user()).To(And(ContainSubstring(`reading Secret kube-system/creds`), ContainSubstring("has no keys vc.username and vc.password")))
	s.Configured = vsphere.Credentials{User: "configured", Password: "p"}
	g.Expect(user()).To(Equal("configured"))
	write("vc.username", "file\n")
	write("vc.password", "p")
	g.Expect(user()).To(Equal("file"))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system",
			Name:      "creds",
		},
		Data: map[string][]byte{"vc.username": []byte("one"), "vc.password": []byte("p")},
	}
	g.Expect(client.Tracker().Add(secret)).To(Succeed())
	g.Expect(user()).To(Equal("one"))

	changed := secret.DeepCopy()
	changed.Data["vc.username"] = []byte("two")
	_, err := client.CoreV1().Secrets("kube-system").Update(t.Context(), changed, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user()).To(Equal("one"), "once a minute")
	now = now.Add(time.Minute)
	g.Expect(user()).To(Equal("two"))
}

func TestAnUnreadableSecret(t *testing.T) {
	s := newSite(t)
	client := fake.NewClientset()
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "vc-b", errors.New("no rule"))
	})
	source := &vsphere.CredentialSource{Host: "vc", Secrets: client.CoreV1(), Namespace: "site-b", Secret: "vc-b", Now: time.Now}
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) { v.Credentials = source.Current })})

	_, err := c.machines.Snapshot(t.Context(), 0)

	trouble, _ := vsphere.Explain(err)
	c.Expect(trouble.Message).To(And(ContainSubstring("lacks the permission get on Secret site-b/vc-b"),
		ContainSubstring("a Role and a RoleBinding in namespace site-b")))
}

func TestChangedCredentialsCauseANewLogin(t *testing.T) {
	s := newSite(t)
	s.rename(1)
	user := "a"
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) {
		v.Credentials = func(context.Context) (vsphere.Credentials, string, error) {
			return vsphere.Credentials{User: user, Password: "p"}, user, nil
		}
	})})
	_, err := c.machines.Snapshot(t.Context(), 0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(s.sessions()).To(HaveLen(1))
	user = "b"
	c.clock.Step(time.Minute)
	s.counted()

	_, err = c.machines.Snapshot(t.Context(), 0)

	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(s.counted()).To(And(HaveKeyWithValue("Login", 1), HaveKeyWithValue("Logout", 1)))
	c.Expect(s.sessions()).To(HaveLen(1))
	c.Expect(c.machines.Close(t.Context())).To(Succeed())
	c.Expect(s.sessions()).To(BeEmpty(), "the session ends with the process")
}

func TestRejectedCredentialsAreNotRetriedUntilTheyChange(t *testing.T) {
	s := newSite(t)
	secret := ""
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) {
		v.Credentials = func(context.Context) (vsphere.Credentials, string, error) {
			return vsphere.Credentials{User: "user", Password: secret}, "version " + secret, nil
		}
	})})
	read := func() error {
		c.clock.Step(time.Minute)
		_, err := c.machines.Snapshot(t.Context(), 0)
		return err
	}

	for range 10 {
		err := read()
		c.Expect(err).To(HaveOccurred())
		trouble, ok := vsphere.Explain(err)
		c.Expect(ok && trouble.Stays).To(BeTrue())
		c.Expect(trouble.Reason).To(Equal("VCenterCredentialsRejected"))
	}
	c.Expect(s.counted()["Login"]).To(Equal(1), "vCenter locks accounts")
	secret = "pass"
	c.Expect(read()).To(Succeed())
}

func TestACertificateLogsInWithAToken(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	s.tag("k8s-zone", "a", s.any("Datacenter"))
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	s.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ccm"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	s.Expect(err).NotTo(HaveOccurred())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	s.Expect(err).NotTo(HaveOccurred())
	encode := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	certificate := encode("CERTIFICATE", der)
	private := encode("PRIVATE KEY", pkcs8)
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) { v.Credentials = password(certificate, private) })},
		func(o *vsphere.MachineOptions) { o.Topology.Zone = "k8s-zone" })

	c.Expect(c.metadata(s, name).Zone).To(Equal("a"))
	c.Expect(s.counted()).To(And(HaveKeyWithValue("LoginByToken", 1), Not(HaveKey("Login"))))

	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.Expect(err).NotTo(HaveOccurred())
	foreign, err := x509.MarshalPKCS8PrivateKey(other)
	s.Expect(err).NotTo(HaveOccurred())
	wrong := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) { v.Credentials = password(certificate, encode("PRIVATE KEY", foreign)) })})
	_, err = wrong.machines.Snapshot(t.Context(), 0)
	wrong.Expect(err).To(MatchError(ContainSubstring("do not match")))
	wrong.Expect(err.Error()).NotTo(ContainSubstring("BEGIN"))
}

func TestTrust(t *testing.T) {
	s := newSite(t)
	sum := sha256.Sum256(s.proxy.Certificate().Raw)
	var parts []string
	for _, b := range sum {
		parts = append(parts, fmt.Sprintf("%02X", b))
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	s.Expect(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.proxy.Certificate().Raw}), 0o600)).To(Succeed())
	for name, tt := range map[string]struct {
		mod    func(*vsphere.VCenter)
		trusts bool
	}{
		"neither":            {func(*vsphere.VCenter) {}, false},
		"a file":             {func(v *vsphere.VCenter) { v.CAFile = ca }, true},
		"a thumbprint":       {func(v *vsphere.VCenter) { v.Thumbprint = strings.Join(parts, ":") }, true},
		"another thumbprint": {func(v *vsphere.VCenter) { v.Thumbprint = "AA:BB" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) {
				v.Insecure = false
				tt.mod(v)
			})})

			_, err := c.machines.Snapshot(t.Context(), 0)

			c.Expect(err == nil).To(Equal(tt.trusts), fmt.Sprint(err))
			if name == "neither" {
				trouble, _ := vsphere.Explain(err)
				c.Expect(trouble.Reason).To(Equal("VCenterCertificateNotTrusted"))
			}
		})
	}
}

func TestAnIdleSessionIsKeptAlive(t *testing.T) {
	s := newSite(t)
	c := newCluster(t, []vsphere.VCenter{s.vCenter()})
	_, err := c.machines.Snapshot(t.Context(), 0)
	c.Expect(err).NotTo(HaveOccurred())
	s.counted()
	c.machines.Start(t.Context())

	c.Eventually(c.clock.HasWaiters).Should(BeTrue())
	c.clock.Step(10 * time.Minute)

	c.Eventually(func() int { return s.counted()["CurrentTime"] }).Should(Equal(1))
}
