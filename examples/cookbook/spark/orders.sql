CREATE TEMPORARY VIEW orders USING pulsar
OPTIONS ('service.url' = 'pulsar://localhost:6650', 'admin.url' = 'http://localhost:8080', 'topic' = 'hello-spark');

SELECT string(__key) AS customer, count(*) AS orders FROM orders GROUP BY customer ORDER BY customer;
