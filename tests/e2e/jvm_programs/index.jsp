<%@ page import="java.util.*, java.util.stream.*" contentType="text/html" %>
<%!
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static String escaped(String text) { return text.replace("&", "&amp;").replace("<", "&lt;"); }
%>
<%
    int number = Integer.parseInt(request.getParameter("n"));
    List<String> words = IntStream.range(0, 400).mapToObj(i -> "w" + (i * number) % 97).sorted(Comparator.reverseOrder()).collect(Collectors.toList());
    request.setAttribute("words", words);
    session.setAttribute("seen", number);
%>
<html><body>
<h1><%= fib(15) %></h1>
<% for (String word : words) { %><li><%= escaped(word.matches("w\\d[3-5]") ? "<" + word + ">" : word) %></li><% } %>
</body></html>
